# Texts that break tokenizers, from a fixed seed. Only code points that every Unicode version in play classes alike are drawn at random;
# see stable() in make_goldens.py.
import random

WORDS = """the of and a to in is you that it he was for on are as with his they I at be this have from or one had by word but not what
all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would
make like him into time has look two more write go see number no way could people my than first water been call who oil its now find long
down day did get come made may part running runner unhappiness internationalization tokenization wonderful terrible happy sad angry love
hate great awful movie flight airline delayed customer service thanks please never always really Hello World LONDON Paris McDonald iPhone
don't can't I'm you're we've he'll she'd it's rock'n'roll O'Neil e-mail state-of-the-art U.S.A. 3.14 1,000,000 50% $9.99 #hashtag @user
http://t.co/AbC123 www.example.com foo_bar snake_case camelCase C++ C# a+b=c x² ½ ©2020 ™ résumé café naïve Zürich Ångström façade
Straße ŒUVRE æsir İstanbul ıspanak ĳsland ǆungla ﬁne ﬂow ĽUBOŠ Đurđević""".split()

OTHER = """привет мир Ёлка ЙОГУРТ здравствуйте їжак Ελληνικά καλημέρα ΌΧΙ άνθρωπος ς σοφός ԲԱՐԵՎ հայերեն გამარჯობა ᲒᲐᲛᲐᲠᲯᲝᲑᲐ
שלום עוֹלָם בְּרֵאשִׁית مرحبا العالم السَّلامُ عليكم لا سلام‌ها پارسی ۱۲۳ ٤٥٦ नमस्ते दुनिया क्षत्रिय १२३ হ্যালো বিশ্ব வணக்கம் உலகம் ஸ்ரீ
ಕನ್ನಡ తెలుగు മലയാളം සිංහල ภาษาไทย สวัสดีชาวโลก กำลัง ๑๒๓ ພາສາລາວ မြန်မာ ភាសាខ្មែរ བོད་ཡིག አማርኛ ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ монгол ᠮᠣᠩᠭᠣᠯ
你好世界 中文分詞 漢字かな交じり文 こんにちは カタカナ ｶﾀｶﾅ がぎぐ がぎぐ 한국어 안녕하세요 안녕 뷁 ㄱㄴㄷ 𠀀𠀁 㐀㐁 𪜀 豈更 丽 全角ＡＢＣ１２３ Ⅷ ⅷ ① ㊗ ㎏
Ｆｕｌｌ ﷺ ﬃ Ǆ Å K Ω ﬀ ŉ ǰ ΐ ẖ ẞ Ⴀ ꙮ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒽𝑒𝓁𝓁𝑜 𝟘𝟙𝟚 𐍈𐌰 𒀀𒁀 𓀀𓁀 𐤀𐤁 𞤀𞤁""".split()

EMOJI = ["😀", "😂", "🤣", "❤", "❤️", "👍", "👍🏽", "👩‍👩‍👧‍👦", "👨‍💻", "🏳️‍🌈", "🏴‍☠️", "🇺🇸", "🇩🇪🇫🇷", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "#️⃣", "☺", "☺️", "✨", "💔", "🙏🏿",
         "🧑🏻‍🤝‍🧑🏿", "🫠", "🥰", "⚽", "➡️", "©️", "〰️", "㊙️", "🀄", "🃏", "🅰️", "Ⓜ️", "ⓐ", "🄰", "🤷‍♀️", "👁️‍🗨️"]

SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u1680", "\u2000",
          "\u2003", "\u2007", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", " \t ", "\n\n", "\u3000 ", " \u3000"]

INVISIBLE = ["\x00", "\x01", "\x07", "\x08", "\x0e", "\x1b", "\x7f", "\x80", "\x9f", "\xad", "\u061c", "\u180e", "\u200b", "\u200c",
             "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff", "\ufff9", "\ufffb", "\ufffc",
             "\ufffd", "\ufffe", "\uffff", "\ue000", "\uf8ff", "\U000e0001", "\U000e007f", "\U000f0000", "\U0010fffd", "\U0010ffff"]

MARKS = ["\u0300", "\u0301", "\u0302", "\u0303", "\u0308", "\u030a", "\u0315", "\u031b", "\u0323", "\u0327", "\u0328", "\u0335", "\u0338",
         "\u0345", "\u034f", "\u0360", "\u0483", "\u0488", "\u05b0", "\u05bc", "\u05c1", "\u0610", "\u064b", "\u064e", "\u0651", "\u0670",
         "\u093c", "\u094d", "\u0e31", "\u0e38", "\u0e48", "\u0f71", "\u0f72", "\u0f74", "\u302a", "\u302e", "\u302f", "\u3099", "\u309a",
         "\u20d0", "\u20dd", "\u20e3", "\ufe0e", "\ufe0f", "\ufe20", "\U0001d165", "\U0001d16d", "\U0001d167"]

PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "’s", "’t", "''", "...",
              "!!!", "?!", "--", "—", "–", "…", "“", "”", "‘", "«", "»", "¿", "¡", "·", "•", "、", "。", "「", "」", "・", "！", "？", "،", "؟", "।",
              "€", "£", "¥", "§", "¶", "†", "‡", "‰", "°", "±", "×", "÷", "¬", "¦", "``", "~~", "^^", "<3", ":)", ":-(", "¯\\_(ツ)_/¯"]

BAD_BYTES = [b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xed\xa0\xbd\xed\xb8\x80", b"\xed\xbf\xbf", b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3",
             b"\xe2\x82", b"\xe2", b"\xf0\x9f\x98", b"\xf0\x9f", b"\xf0", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf",
             b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff", b"\xff\xfe", b"\xe2\x82\x41", b"\xf0\x9f\x98\x41",
             b"\xc3\x28", b"\xe2\x28\xa1", b"\xf0\x28\x8c\xbc", b"\xf0\x90\x28\xbc"]

ADDED = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "<s>", "</s>", "<mask>", "<pad>", "<unk>", "[mask]", "<MASK>", "<left>", "<right>", "<both>",
         "<word>", "<Norm>", "<norm>", "<NORM>", "Ünïcode", "ünïcode", "UNICODE", "<le", "<left", "<leftmost>", "two words", "Two Words", "<s", "s>",
         "[CLS", "<left><right>", "<both><both>"]


def handmade(added):
    """Bytes of the lines that somebody thought of."""
    lines = [b"", b" ", b"  ", b"   ", b"a", b"A", b"\x00", b"a\x00b", b"Hello World", b" Hello World", b"Hello world!", b"  leading", b"trailing  ",
             b"a  b   c    d", b"it's, don't, I'm you're we've they'll he'd IT'S 'sabc 'tis ''s ' s"]
    lines += [s.encode() for s in SPACES] + [("a" + s + "b").encode() for s in SPACES] + [(s + s + "x" + s + s + s).encode() for s in SPACES]
    lines += [("".join(SPACES)).encode(), ("a" + "".join(SPACES) + "b").encode()]
    lines += [("a" + s + "b").encode("utf-8", "surrogatepass") for s in INVISIBLE] + [(s * 3).encode() for s in INVISIBLE]
    lines += [("e" + m + "x " + m).encode() for m in MARKS] + [("a" + m + "\u0323" + m + "\u0301").encode() for m in MARKS]
    lines += [e.encode() for e in EMOJI] + [("so " + e + e + "fun" + e + " " + e + "!").encode() for e in EMOJI]
    lines += [b"x" + b + b"y" for b in BAD_BYTES] + [b for b in BAD_BYTES] + [b"caf\xc3\xa9 " + b + b + b" \xe4\xb8\xad" for b in BAD_BYTES]
    lines += [("x" + p + "y " + p + " " + p + p + "z").encode() for p in PUNCTUATION]
    lines += [w.encode() for w in OTHER] + [(w + w.lower() + " " + w.upper()).encode() for w in WORDS + OTHER]
    for n in (23, 24, 25, 26, 99, 100, 101, 102, 255, 256, 257, 300):
        lines += [b"x" * n, ("é" * n).encode(), ("ab" * n).encode()[:n], ("好" * n).encode(), b"!" * n, b"9" * n, b" " * n, ("e\u0301" * n).encode()]
        lines += [("unhappiness" * 40)[:n].encode(), ("😀" * (n // 3)).encode(), ("a" * (n - 1) + " " + "b" * n).encode()]
    for t in added:
        for form in ("{}", "{} x", "x {}", "x{}y", "x {} y", "x  {}  y", " {}", "{} ", "\t{}\n", "é{}é", "({})", "{0}{0}", "{0} {0}", "a\u3000{}\u3000b", "_{}_", "1{}", "'{}'s",
                     "A {} B", "\u200d{}", "😀{}😀"):
            lines.append(form.format(t).encode())
    return lines


def random_lines(rng, count, stable_chars):
    """Mixtures. stable_chars: list of characters from all planes."""
    pools = [(WORDS, 8), (OTHER, 5), (EMOJI, 2), (SPACES, 2), (INVISIBLE, 1), (MARKS, 2), (PUNCTUATION, 4), (ADDED, 2)]
    choices, weights = [p for p, _ in pools], [w for _, w in pools]
    lines = []
    for i in range(count):
        kind = i % 5
        if kind == 0:
            lines.append("".join(rng.choice(stable_chars) for _ in range(rng.randint(1, 14))).encode())
        elif kind == 1:
            lines.append(bytes(rng.randint(0, 127) for _ in range(rng.randint(1, 30))))
        elif kind == 2:
            lines.append(b"".join(rng.choice(BAD_BYTES) if rng.random() < 0.4 else rng.choice(WORDS + OTHER + SPACES).encode()
                                  for _ in range(rng.randint(1, 5))))
        else:
            parts = []
            for _ in range(rng.randint(1, 8)):
                parts.append(rng.choice(rng.choices(choices, weights)[0]))
                if rng.random() < 0.6:
                    parts.append(" " if rng.random() < 0.8 else rng.choice(SPACES))
            lines.append("".join(parts).encode())
    return lines


def training_text(rng, lines):
    """Sentences to train the small tokenizers on."""
    out = []
    for _ in range(lines):
        out.append(" ".join(rng.choice(WORDS if rng.random() < 0.7 else OTHER + EMOJI) + (rng.choice(PUNCTUATION) if rng.random() < 0.2 else "")
                            for _ in range(rng.randint(3, 14))))
    return out
