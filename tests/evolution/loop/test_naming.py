from evolution.loop.naming import name_clusters


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
