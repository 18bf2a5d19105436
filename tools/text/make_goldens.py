# Golden values of the Rust tokenizers library for tests/text. Needs the PyPI package tokenizers (0.23.3 made the committed ones).
#   make_goldens.py OUT_DIR                            trains the two small tokenizers, writes them, the lines and the goldens
#   make_goldens.py --trained OUT_DIR                  what the Rust trainer learns from the lines that are there
#   make_goldens.py --tokenizer DIR --texts FILE OUT   goldens of any tokenizer.json for a file of texts, one a line ("-": the nasty lines)
# Formats are described in tests/text/golden.h. Everything comes from fixed seeds.
import argparse
import copy
import json
import os
import random
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

import nasty_lines

MASK64 = (1 << 64) - 1


def digest(words, width):
    h = 0xCBF29CE484222325
    for w in words:
        h = ((h ^ w) * 0x100000001B3) & MASK64
    return ("%08x" % ((h >> 32) ^ (h & 0xFFFFFFFF)))[-width:]


def digests(encoding, pair, width=4):
    """ids, and everything else: offsets in code points, token strings; for pairs also type ids and the special tokens mask."""
    rest = [x for o in encoding.offsets for x in o]
    for token in encoding.tokens:
        rest += list(token.encode()) + [256]
    if pair:
        rest += encoding.type_ids + encoding.special_tokens_mask
    return digest(encoding.ids, width), digest(rest, width)


def read_as_rust(raw):
    return raw.decode("utf-8", errors="replace")  # one U+FFFD per maximal subpart, as String::from_utf8_lossy


def escape(raw):
    """One line of text for any bytes: valid UTF-8 as it is, the rest and what ends a line as \\xHH, a backslash doubled."""
    out = []
    for c in raw.decode("utf-8", errors="surrogateescape"):
        o = ord(c)
        if 0xDC80 <= o <= 0xDCFF:
            out.append("\\x%02x" % (o - 0xDC00))
        elif c == "\\":
            out.append("\\\\")
        elif o < 0x20 or o == 0x7F:
            out.append("\\x%02x" % o)
        else:
            out.append(c)
    return "".join(out)


def stable(chars):
    """Those that all Unicode versions in play class alike: the BERT parts of the Rust library use Unicode 8, its regular expressions 16,
    Python here 14, utf8proc 15. What differs is left out of the random lines."""
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    strip = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    nfd = normalizers.NFD()
    bert = pre_tokenizers.BertPreTokenizer()
    letter, number = pre_tokenizers.Split(Regex(r"\p{L}"), "isolated"), pre_tokenizers.Split(Regex(r"\p{N}"), "isolated")
    keep = []
    for c in chars:
        category = unicodedata.category(c)
        if category == "Cn" or c in "\ufffd":
            continue
        if category[0] == "M" and unicodedata.ucd_3_2_0.category(c) == "Cn":
            continue
        text = "\x01" + c + "\x01"
        decomposed = unicodedata.normalize("NFD", c)
        ascii_symbol = ord(c) < 128 and not c.isalnum() and 32 < ord(c) < 127
        checks = [
            (clean.normalize_str("a" + c + "b") == "ab") == (category in ("Cc", "Cf", "Co") and c not in "\t\n\r"),
            nfd.normalize_str(c) == decomposed,
            strip.normalize_str(c) == "".join(d for d in decomposed if unicodedata.category(d) != "Mn"),
            (len(bert.pre_tokenize_str("a" + c + "b")) == 3) == (category[0] == "P" or ascii_symbol),
            (len(letter.pre_tokenize_str(text)) != 1) == (category[0] == "L"),
            (len(number.pre_tokenize_str(text)) != 1) == (category[0] == "N"),
        ]
        if all(checks):
            keep.append(c)
    return keep


def nasty():
    rng = random.Random(20240607)
    planes = [(0x20, 0x2FF), (0x300, 0x7FF), (0x800, 0x1FFF), (0x2000, 0x2FFF), (0x3000, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x1FFFF),
              (0x20000, 0x3FFFF), (0xE0000, 0xE01FF), (0xF0000, 0x10FFFF)]
    chars = [chr(rng.randint(*rng.choice(planes))) for _ in range(6000)]
    lines = nasty_lines.handmade(nasty_lines.ADDED) + nasty_lines.random_lines(rng, 1000, stable(chars))
    return list(dict.fromkeys(lines))


def train(kind):
    text = nasty_lines.training_text(random.Random(7), 3000)
    if kind == "wordpiece":
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        lowered = [normalizers.BertNormalizer().normalize_str(s) for s in text[:1500]]
        t.train_from_iterator(text + lowered, trainers.WordPieceTrainer(vocab_size=2400, min_frequency=1, show_progress=False,
                              special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        t.normalizer = normalizers.BertNormalizer()
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                         special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    else:
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        t.train_from_iterator(text, trainers.BpeTrainer(vocab_size=2000, min_frequency=1, show_progress=False,
                              special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
        t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return json.loads(t.to_str())


def added(content, id, **flags):
    token = {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    token.update(flags)
    return token


def variants(wordpiece, bpe):
    """name, base, JSON merge patch (RFC 7386). The first of each base keeps its ids in full."""
    bert = lambda **f: {"normalizer": f}
    w, b = len(wordpiece["model"]["vocab"]), len(bpe["model"]["vocab"])
    extra = lambda n: [added("<left>", n, lstrip=True), added("<right>", n + 1, rstrip=True), added("<both>", n + 2, lstrip=True, rstrip=True),
                       added("<word>", n + 3, single_word=True), added("<Norm>", n + 4, normalized=True), added("Ünïcode", n + 5, normalized=True),
                       added("two words", n + 6, normalized=False), added("<leftmost>", n + 7, special=True, normalized=False),
                       added("mer", n + 8, single_word=True, lstrip=True, rstrip=True)]
    return [
        ("wordpiece", "wordpiece", {}),
        ("wordpiece_cased", "wordpiece", bert(lowercase=False, strip_accents=False)),
        ("wordpiece_cased_null", "wordpiece", bert(lowercase=False, strip_accents=None)),
        ("wordpiece_lower_accents", "wordpiece", bert(strip_accents=False)),
        ("wordpiece_cased_stripped", "wordpiece", bert(lowercase=False, strip_accents=True)),
        ("wordpiece_no_chinese", "wordpiece", bert(handle_chinese_chars=False)),
        ("wordpiece_dirty", "wordpiece", bert(clean_text=False, lowercase=False)),
        ("wordpiece_added", "wordpiece", {"added_tokens": wordpiece["added_tokens"] + extra(w)}),
        ("wordpiece_bert_processing", "wordpiece", {"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "single": None,
         "pair": None, "special_tokens": None}, "model": {"max_input_chars_per_word": 12}}),
        ("wordpiece_plain", "wordpiece", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}],
         "clean_text": None, "handle_chinese_chars": None, "strip_accents": None, "lowercase": None}, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None}),
        ("wordpiece_bare", "wordpiece", {"normalizer": {"type": "NFKD", "clean_text": None, "handle_chinese_chars": None, "strip_accents": None, "lowercase": None},
         "pre_tokenizer": None}),
        ("bpe", "bpe", {}),
        ("bpe_prefix", "bpe", {"pre_tokenizer": {"add_prefix_space": True}, "post_processor": {"add_prefix_space": True}}),
        ("bpe_no_trim", "bpe", {"post_processor": {"trim_offsets": False}}),
        ("bpe_template", "bpe", {"post_processor": {"type": "TemplateProcessing", "cls": None, "sep": None, "trim_offsets": None, "add_prefix_space": None,
         "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
         "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}},
                  {"Sequence": {"id": "B", "type_id": 2}}, {"SpecialToken": {"id": "</s>", "type_id": 1}}],
         "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2, 2], "tokens": ["</s>", "</s>"]}}}}),
        ("bpe_byte_level_processor", "bpe", {"pre_tokenizer": {"add_prefix_space": True}, "post_processor": {"type": "ByteLevel", "add_prefix_space": True,
         "trim_offsets": True, "use_regex": True, "cls": None, "sep": None}}),
        ("bpe_no_regex", "bpe", {"pre_tokenizer": {"use_regex": False}, "model": {"ignore_merges": True}}),
        ("bpe_added", "bpe", {"pre_tokenizer": {"add_prefix_space": True}, "added_tokens": bpe["added_tokens"] + extra(b)}),
        ("bpe_lower", "bpe", {"normalizer": {"type": "Lowercase"}, "added_tokens": bpe["added_tokens"] + extra(b)}),
    ]


def patched(base, patch):
    out = copy.deepcopy(base)

    def merge(target, change):
        for k, v in change.items():
            if v is None:
                target.pop(k, None)
            elif isinstance(v, dict) and isinstance(target.get(k), dict):
                merge(target[k], v)
            else:
                target[k] = copy.deepcopy(v)
    merge(out, patch)
    for key in ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"):
        out.setdefault(key, None)
    if isinstance(out["normalizer"], dict) and out["normalizer"].get("type") == "BertNormalizer":
        out["normalizer"].setdefault("strip_accents", None)
    return out


def pairs(lines):
    """Which two lines make a pair, and the length they are cut to (0: not)."""
    for i in range(150):
        yield (i * 37 + 11) % len(lines), (i * 101 + 5) % len(lines), (0, 0, 8, 13, 24)[i % 5]


def golden(tokenizer, lines, full, width=4):
    tokenizer.no_padding()
    tokenizer.no_truncation()
    out = []
    for raw in lines:
        e = tokenizer.encode(read_as_rust(raw))
        ids, rest = digests(e, False, width)
        out.append((" ".join(map(str, e.ids)) if full else ids) + "|" + rest)
    return out


def golden_pairs(tokenizer, lines):
    out = []
    for first, second, length in pairs(lines):
        if length:
            tokenizer.enable_truncation(length)
        else:
            tokenizer.no_truncation()
        out.append("|".join(digests(tokenizer.encode(read_as_rust(lines[first]), read_as_rust(lines[second])), True)) + "|%d %d %d" % (first, second, length))
        if length:
            out.append("|".join(digests(tokenizer.encode(read_as_rust(lines[first])), True)) + "|%d -1 %d" % (first, length))
    tokenizer.no_truncation()
    return out


def write(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(line + "\n" for line in lines))


def trained(out):
    """trained.golden: SIZE TOKENS MERGES DIGEST of the byte-level BPE that the Rust trainer learns from lines.txt as it stands."""
    from tokenizers import ByteLevelBPETokenizer
    with open(os.path.join(out, "trained.golden"), "w") as file:
        for size in (300, 700, 2000, 5000):
            bpe = ByteLevelBPETokenizer()
            bpe.train([os.path.join(out, "lines.txt")], vocab_size=size, min_frequency=2, show_progress=False,
                      special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
            model = json.loads(bpe.to_str())["model"]
            words = []
            for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1]):
                words += list(token.encode()) + [256]
            for left, right in model["merges"]:
                words += [model["vocab"][left], model["vocab"][right]]
            file.write("%d %d %d %s\n" % (size, len(model["vocab"]), len(model["merges"]), digest(words, 8)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokenizer")
    parser.add_argument("--texts", default="-")
    parser.add_argument("--trained", action="store_true", help="trained.golden only, from the lines.txt of OUT_DIR")
    parser.add_argument("out")
    args = parser.parse_args()
    if args.trained:
        trained(args.out)
        return
    os.makedirs(args.out, exist_ok=True)
    if args.tokenizer:
        lines = nasty() if args.texts == "-" else open(args.texts, "rb").read().split(b"\n")
        tokenizer = Tokenizer.from_file(os.path.join(args.tokenizer, "tokenizer.json"))
        tokenizer.no_padding()
        write(os.path.join(args.out, "lines.txt"), map(escape, lines))
        write(os.path.join(args.out, "all.golden"), golden(tokenizer, lines, False, 8))
        return
    lines = nasty()
    bases = {"wordpiece": train("wordpiece"), "bpe": train("bpe")}
    for name, base in bases.items():
        with open(os.path.join(args.out, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(base, f, ensure_ascii=False, separators=(",", ":"))
    write(os.path.join(args.out, "lines.txt"), map(escape, lines))
    table = variants(bases["wordpiece"], bases["bpe"])
    with open(os.path.join(args.out, "variants.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps({"name": n, "base": b, "patch": p}, ensure_ascii=False) for n, b, p in table) + "\n]\n")
    for name, base, patch in table:
        tokenizer = Tokenizer.from_str(json.dumps(patched(bases[base], patch)))
        write(os.path.join(args.out, name + ".golden"), golden(tokenizer, lines, name == base))
        write(os.path.join(args.out, name + ".pairs"), golden_pairs(tokenizer, lines))
    print(len(lines), "lines,", len(table), "tokenizers")


if __name__ == "__main__":
    main()
