from evolution.loop.masking import SHIPPED, Masker
from evolution.loop.masking.measured import mask_measured
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun

KEY = "sk-" + "abcdefgh12345678"
MASKER = Masker([rule for rule in SHIPPED if rule.is_secret])


def make_run(key: str, text: str) -> MeasuredRun:
    cases = [MeasuredCase(key, request={"danmaku": [{"text": text}]})]
    results = [
        MeasuredResult(key, reply=text, reasons={"a": text}, trajectory={"messages": [text]}, error=text)
    ]
    return MeasuredRun("f", "d", "m", "j", "u", cases, results, details={"env": text}, problems=[text])


def test_secrets_are_taken_out_of_cases_results_and_details() -> None:
    masked = mask_measured(make_run("1", f"use {KEY}"), MASKER)
    assert KEY not in repr(masked)
    assert masked.results[0].reply == "use [API key 1]"


def test_personal_data_stays() -> None:
    run = make_run("1", "13812345678")
    assert mask_measured(run, MASKER) == run


def test_a_case_and_its_result_keep_one_key() -> None:
    masked = mask_measured(make_run(KEY, "x"), MASKER)
    assert masked.cases[0].key == masked.results[0].key != KEY
