"""What the shipped rules find and leave: texts by hand, and the sample data, whose hits were read one by one."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evolution.actions.masking import check_rule
from evolution.loop.masking import SHIPPED, Masker, Rule
from tests.evolution.intake import DATA, needs_data

MASKER = Masker(SHIPPED)
# Finds the same without the shortcut.
SLOW = Masker([replace(rule, quick="") for rule in SHIPPED])
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
GITHUB = "ghp_" + "a1B2" * 9
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n" + "-----END RSA PRIVATE KEY-----"

FOUND = [
    ("电话13812345678，备用 138 1234 5678", "电话[phone 1]，备用 [phone 1]"),
    ("+86 139-1234-5678 或 0086 13912345678", "[phone 1] 或 [phone 1]"),
    ("１３８１２３４５６７８", "[phone 1]"),
    ("加微信wx13812345678", "加微信wx[phone 1]"),
    (r"a\n13812345678", r"a\n[phone 1]"),
    ("固话010-62345678转801，(0571)87654321", "固话[phone 1]，[phone 2]"),
    ("座机：01062345678", "座机：[phone 1]"),
    ("+1 (415) 555-2671, 415-555-2671", "[phone 1], [phone 2]"),
    ("身份证11010519491231002X", "身份证[id card 1]"),
    ("身份证号：110105194912310020", "身份证号：[id card 1]"),
    ("130503670401001", "[id card 1]"),
    ("卡号6222 0212 3456 7890 128", "卡号[bank card 1]"),
    ("4111-1111-1111-1111", "[bank card 1]"),
    ("邮箱zhang.san+x@qq.com。", "邮箱[e-mail 1]。"),
    ("收货地址：浙江省杭州市西湖区文三路100号3栋2单元502室，尽快", "收货地址：[address 1]，尽快"),
    ("我住在朝阳区建国路88号院5号楼1203", "我住在[address 1]"),
    ("寄到万科城市花园12栋301室", "寄到[address 1]"),
    ("to 123 Main Street, Apt 4B, Springfield, IL 62704 please", "to [address 1] please"),
    ("订单号：2024051512345678 再查 2024051512345678", "订单号：[order number 1] 再查 [order number 1]"),
    ('{"order": {"id": "6920001234567890123"}}', '{"order": {"id": "[order number 1]"}}'),
    ("order number 1234567890, #112-1234567-1234567", "order number [order number 1], #[order number 2]"),
    ("运单号 SF1234567890123", "运单号 [order number 1]"),
    ("key sk-abcdefghijklmnop1234567890", "key [API key 1]"),
    (f"push with {GITHUB}", "push with [API key 1]"),
    ("Authorization: Bearer abcdef123456.ghi-jkl", "Authorization: Bearer [token 1]"),
    (r'{"h": "{\"Authorization\": \"Basic dXNlcjpwYXNz\"}"}', r'{"h": "{\"Authorization\": \"Basic [token 1]\"}"}'),
    (JWT, "[token 1]"),
    ('api_key="abcd1234efgh5678"', 'api_key="[API key 1]"'),
    ("OPENAI_API_KEY=zzzz1111yyyy2222", "OPENAI_API_KEY=[API key 1]"),
    ("password: hunter2! 密码是abc12345", "password: [password 1] 密码是[password 2]"),
    ("postgres://user:p%40ss@db:5432/x", "postgres://user:[password 1]@db:5432/x"),
    ("https://x.com/?sig=abcdef123456&b=1", "https://x.com/?sig=[password 1]&b=1"),
    (f"{AWS} {AWS_SECRET}", "[AWS key 1] [AWS secret 1]"),
    (f"aws_secret_access_key = {AWS_SECRET}", "aws_secret_access_key = [AWS secret 1]"),
    (f"{PEM} after", "[private key 1] after"),
    (PEM[:48], "[private key 1]"),
    ("138.1234.5678 (138)12345678 138-12345678", "[phone 1] [phone 1] [phone 1]"),
    ("加我一三八一二三四五六七八", "加我[phone 1]"),
    ("138\u200b1234\u200b5678", "[phone 1]"),
    ("身份证１１０１０５１９４９１２３１００２Ｘ", "身份证[id card 1]"),
    ("?email=li.lei%40example.com", "?email=[e-mail 1]"),
    ("Bearer abcdefghijklmnopqrstuvwxyzabcdef", "Bearer [token 1]"),
    ("client_secret=abcdefghijklmnopqrst", "client_secret=[API key 1]"),
    ("AccountName=x;AccountKey=abcdEFGH1234abcdEFGH==;", "AccountName=x;AccountKey=[API key 1];"),
    ("SLACK_TOKEN=q9w8e7r6t5y4 githubToken: z1x2c3v4b5n6", "SLACK_TOKEN=[API key 1] githubToken: [API key 2]"),
    ("pwd=letmein; x=1", "pwd=[password 1]; x=1"),
    ("Cookie: sessionid=9f8e7d6c; theme=dark\nHost: x", "Cookie: [cookie 1]\nHost: x"),
    ("got JSESSIONID=A1B2C3D4E5F6A7B8;", "got JSESSIONID=[cookie 1];"),
    (r'["{\\"\\u5bc6\\u7801\\": \\"hunter22!\\"}"]', r'["{\\"密码\\": \\"[password 1]\\"}"]'),
    (r"\u7535\u8bdd13812345678 \u6587\u4e09\u8def88\u53f7", "电话[phone 1] [address 1]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "masked"), FOUND)
def test_what_tells_of_somebody_or_opens_something_is_masked(text: str, masked: str) -> None:
    assert MASKER.mask_text(text) == masked
    assert SLOW.mask_text(text) == masked


LEFT = [
    "3号链接多少钱？ 知道5号发货吗 这路3号 3月5号到 地铁2号线 5号楼",
    "价格89.00元，券后 1,299.00，第13期，2024-05-15 15:00:00",
    "SKU W13812345678A 和 4823910-11, ISBN 978-7-111-12345-6",
    "1700000000 1700000000000 1700000000000000000",
    "reservation EHGLP3, user mia_li_3668, flight HAT136, order #W2378156",
    "拨打400-889-9315或1-800-555-0199",
    "trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7",
    "d41d8cd98f00b204e9800998ecf8427e 550e8400-e29b-41d4-a716-446655440000",
    "4111 1111 1111 1112 不是卡号",
    "password is required; password: string; api_key: YOUR_KEY; token: <token>",
    "forgot password: reset; api_key: YOUR_KEY; secret: none; next token: 2024-05-15T10:00",
    "138.50.1381 价格138.1234 一三八 订了一百三十八件",
    "a chocolate cookie: two for one",
    "max_tokens: 1024, prompt_tokens=2048, the bearer of bad news",
    "北京市朝阳区今天有雨，南京路步行街很热闹",
    "git@github.com:o/r.git @app.route",
    "Turn 5 Left, 3 Easy Steps, 10 Percent",
]


@pytest.mark.parametrize("text", LEFT)
def test_prices_times_ids_and_everyday_words_stay(text: str) -> None:
    assert MASKER.mask_text(text) == text


@pytest.mark.parametrize("rule", SHIPPED, ids=lambda rule: rule.name)
def test_a_shipped_rule_is_one_that_people_could_save(rule: Rule) -> None:
    check_rule(rule)


def _read(path: Path) -> list[Any]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    value = json.loads(path.read_text())
    return value if isinstance(value, list) else [value]


def _hits(path: str) -> Counter[str]:
    return sum((Counter(MASKER.mask_value(value)[1]) for value in _read(DATA / path)), Counter())


@needs_data
def test_of_tau_bench_only_mails_and_streets_are_masked() -> None:
    hits = _hits("tau_bench/gpt-4o-airline.json")
    assert set(hits) == {"email", "street"}


@needs_data
def test_nothing_is_masked_of_utterances_without_personal_data() -> None:
    assert _hits("crosswoz_intents/crosswoz_user_intents_zh.jsonl") == {}


@needs_data
def test_the_quick_expressions_miss_nothing_of_the_sample_data() -> None:
    for path in sorted(DATA.glob("ecom_bench/**/*.json")) + sorted(DATA.glob("langfuse/*.json")):
        for value in _read(path):
            assert MASKER.mask_value(value) == SLOW.mask_value(value)


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (
            {"name": "x-api-key", "value": "abcdefabcdef123456789"},
            {"name": "x-api-key", "value": "[API key 1]"},
        ),
        ({"value": "hunter2", "key": "password"}, {"value": "[password 1]", "key": "password"}),
        (
            {"key": "api_key", "value": {"stringValue": "abcd1234efgh"}},
            {"key": "api_key", "value": {"stringValue": "[API key 1]"}},
        ),
        (["authorization", "abcdefabcdef12345678"], ["authorization", "[token 1]"]),
        (
            {"headers": {"secret": "q9w8e7r6t5y4", "token": "z1x2c3v4b5n6"}},
            {"headers": {"secret": "[API key 1]", "token": "[API key 2]"}},
        ),
        (
            {"aws": {"id": AWS, "secret": AWS_SECRET}},
            {"aws": {"id": "[AWS key 1]", "secret": "[AWS secret 1]"}},
        ),
        ({"cookies": {"sid": "9f8e7d6c5b4a"}}, {"cookies": {"sid": "[cookie 1]"}}),
        ({"password": "letmein"}, {"password": "[password 1]"}),
        ({"password": "string", "token": "required"}, {"password": "string", "token": "required"}),
        ({"phone": 13812345678.0}, {"phone": "[phone 1]"}),
        (["name", "token", "13x"], ["name", "token", "13x"]),
    ],
)
def test_what_stands_apart_from_its_name_is_masked(value: Any, masked: Any) -> None:
    assert MASKER.mask_value(value)[0] == masked
    assert SLOW.mask_value(value)[0] == masked


@pytest.mark.parametrize(
    "text",
    ["中国" * 300_000 + "大街1号", "-eyJabcdefgh" * 80_000 + " eyJabcdefgh.eyJ"],
    ids=["address", "jwt"],
)
def test_a_long_text_is_no_reason_to_give_up(text: str) -> None:
    assert MASKER.find(text) is not None


def test_what_a_rule_reaches_is_found_wherever_it_stands_in_a_long_text() -> None:
    text = "好，" * 5000 + "北京市海淀区中关村大街27号" + "，好" * 5000 + "api_key=abcd1234efgh5678"
    assert [found.text for found in MASKER.find(text)] == ["北京市海淀区中关村大街27号", "abcd1234efgh5678"]
