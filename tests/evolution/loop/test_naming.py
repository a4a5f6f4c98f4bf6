import json
import re

from evolution.adapters.formats.tau_bench import read_item
from evolution.loop.case_content import request_text
from evolution.loop.naming import name_clusters
from tests.evolution.intake import TAU_BENCH, needs_data


def test_names_are_what_tells_a_cluster_from_the_others() -> None:
    texts = [
        "优惠券怎么领取 直播间",
        "优惠券怎么领 直播间",
        "快递什么时候发货 直播间",
        "发货用什么快递 直播间",
    ]
    names = name_clusters(texts, [0, 0, 1, 1])
    assert "优惠券" in names[0]
    assert "快递" in names[1]
    assert "直播间" not in names[0] + names[1]


def test_terms_of_one_text_do_not_name_the_cluster() -> None:
    names = name_clusters(["cancel reservation", "cancel booking", "baggage fee"], [0, 0, -1])
    assert names == {0: "cancel"}


def test_texts_without_a_term_give_the_empty_name() -> None:
    assert name_clusters(["", "?"], [0, 0]) == {0: ""}


def test_what_all_failures_of_a_run_say_names_none_of_them() -> None:
    symptom = "reward 0: the data after the conversation is not what was asked for"
    asked = ["cancel my flight", "cancel the flight", "two bags please", "my bags"]
    names = name_clusters([f"{symptom}\n{text}" for text in asked], [0, 0, 1, 1])
    assert names == {0: "cancel · flight", 1: "bags"}


def test_what_most_of_one_cluster_says_word_for_word_is_its_name() -> None:
    texts = [f"missing fact\n没有说到邮费\n问题{number}" for number in "甲乙丙"]
    texts += [f"missing fact\n{text}" for text in ("几点抽奖", "抽奖吗", "啥时候抽奖")]
    assert name_clusters(texts, [0, 0, 0, 1, 1, 1])[0] == "没有说到邮费"


def test_kinds_of_findings_are_no_terms() -> None:
    texts = ["forbidden claim\n随时都能退哈\n能退吗", "forbidden claim unanswered\n想退就退哈\n退得了吗"]
    texts += ["missing fact\n几点开播", "wrong language\n明天几点开播"]
    names = name_clusters(texts, [0, 0, 1, 1])
    assert not {"forbidden", "claim", "fact", "language"} & set(" ".join(names.values()).split())


def test_a_piece_of_a_phrase_is_shown_as_the_whole_phrase() -> None:
    texts = ["库存充足随便拍哈\n有货吗", "库存充足随便拍哈\n橙子还有不", "库存在哪看", "几点发货", "发货没有"]
    assert "库存充足随便拍" in name_clusters(texts, [0, 0, 0, 1, 1])[0].split(" · ")


def test_two_clusters_are_never_called_alike() -> None:
    names = name_clusters(
        ["refund late", "refund late", "refund late", "refund late", "other thing"], [0, 0, 1, 1, -1]
    )
    assert len(set(names.values())) == 2


@needs_data
def test_real_failures_with_one_symptom_get_names_of_whole_words() -> None:
    records = json.loads(TAU_BENCH.read_text())
    failed = [r for n, item in enumerate(records) if (r := read_item(item, "x", n)).scores["reward"] < 1]
    texts = [
        f"{r.symptom}\n{request_text(r.request)}\n{json.dumps(r.trajectory['tool_calls'])}" for r in failed
    ]
    labels = [sum(tool in text for tool in ("cancel_", "book_", "update_")) for text in texts]
    names = name_clusters(texts, labels)
    words = set(re.findall(r"[a-z][a-z'-]+", "\n".join(texts).lower()))
    assert len(set(names.values())) == len(set(labels))
    assert all(name and set(name.split(" · ")) <= words for name in names.values())
