"""One made-up credential of each kind, put together here so that no scanner takes them for real ones."""

from __future__ import annotations

import base64
import random
import string


def _text(seed: int, size: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    rng = random.Random(seed)
    return "7" + "".join(rng.choice(alphabet) for _ in range(size - 1))


_HEX = string.digits + "abcdef"
_UPPER = string.ascii_uppercase + string.digits

# Known by their shape.
TOKENS: dict[str, str] = {
    "openai": "sk-proj-" + _text(1, 40),
    "anthropic": "sk-ant-" + "api03-" + _text(2, 40),
    "aws key id": "AKIA" + _text(3, 16, _UPPER),
    "google": "AIza" + _text(4, 35),
    "google oauth": "ya29." + _text(5, 40),
    "hugging face": "hf_" + _text(6, 34),
    "github": "ghp_" + _text(7, 36),
    "github fine-grained": "github_pat_" + _text(8, 60),
    "gitlab": "glpat-" + _text(9, 20),
    "slack": "xoxb-" + _text(10, 12, string.digits) + "-" + _text(11, 24),
    "stripe": "sk_live_" + _text(12, 24),
    "stripe restricted": "rk_live_" + _text(13, 24),
    "npm": "npm_" + _text(14, 36),
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + _text(15, 60),
    "sendgrid": "SG." + _text(16, 22) + "." + _text(17, 43),
    "mailgun": "key-" + _text(18, 32, _HEX),
    "twilio": "SK" + _text(19, 32, _HEX),
    "discord": "M" + _text(20, 23) + "." + _text(21, 6) + "." + _text(22, 38),
    "telegram": _text(23, 9, string.digits) + ":AA" + _text(24, 33),
    "groq": "gsk_" + _text(25, 52),
    "databricks": "dapi" + _text(26, 32, _HEX),
    "vault": "hvs." + _text(27, 24),
    "langsmith": "lsv2_" + "pt_" + _text(28, 32, _HEX) + "_" + _text(29, 10, _HEX),
    "jwt": "eyJ" + _text(30, 20) + ".eyJ" + _text(31, 40) + "." + _text(32, 43),
    "private key": "-----BEGIN " + f"PRIVATE KEY-----\n{_text(33, 64)}\n{_text(34, 64)}\n-----END PRIVATE KEY-----",
}

# Known by what stands before them: the text they stand in, and the secret.
_BASIC = base64.b64encode(b"user:" + _text(40, 12).encode()).decode()
IN_TEXT: dict[str, tuple[str, str]] = {
    "bearer": (f"Authorization: Bearer {_text(41, 30)}", _text(41, 30)),
    "basic": (f"Authorization: Basic {_BASIC}", _BASIC),
    "cookie": (f"Cookie: sid={_text(42, 24)}; theme=dark", _text(42, 24)),
    "database url": (f"postgres://app:{_text(43, 14)}@db.internal/shop", _text(43, 14)),
    "azure account": (f"AccountName=x;AccountKey={_text(44, 86)}==;EndpointSuffix=core", _text(44, 86)),
    "aws secret key": (f"aws_secret_access_key = {_text(45, 40)}", _text(45, 40)),
    "slack webhook": (f"https://hooks.slack.com/services/T0/B0/{_text(46, 24)}", _text(46, 24)),
    "password in json": (f'{{"password": "{_text(47, 12)}"}}', _text(47, 12)),
    "camel case": (f'{{"accessKey": "{_text(48, 20)}"}}', _text(48, 20)),
    "escaped json": (f'{{"args": "{{\\"client_secret\\": \\"{_text(49, 20)}\\"}}"}}', _text(49, 20)),
    "form": (f"grant_type=x&password={_text(50, 11)}&scope=y", _text(50, 11)),
    "query": (f"https://api.example.com/v1?api_key={_text(51, 20)}&page=2", _text(51, 20)),
    "dotenv": (f"export DB_PASSWORD={_text(52, 10)}", _text(52, 10)),
    "option": (f"tool --api-key {_text(53, 18)} --verbose", _text(53, 18)),
    "python": (f"connect(password='{_text(54, 13)}')", _text(54, 13)),
    "xml": (f"<password>{_text(55, 13)}</password>", _text(55, 13)),
}

# Of the same words, and no secret: must stay readable.
NEIGHBOURS = (
    '"max_tokens": 512',
    '"next_page_token": "CAUQAA1234567890"',
    '"completion_tokens": 17, "token_count": 3',
    '"prompt_cache_key": "agent-v1-2024"',
    '"public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"',
    '"session_id": "conversation-42-abcdef"',
    '"primary_key": "order_id_is_the_key"',
    '"eos_token": "<|endoftext|>"',
    '"password_policy": "at least 12 signs"',
    '"usage": {"total_tokens": 20}, "author": "somebody"',
    '{"token": " the", "logprob": -0.1}',
    "passport: 12345678, the secret of good soup",
)
