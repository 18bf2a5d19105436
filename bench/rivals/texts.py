"""What the rivals share: the demo's texts in batches of 32, and the models by shape."""
import random
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, RobertaConfig, RobertaForSequenceClassification


def batches(model_folder, data_folder, seed=0):
    """Endless batches of 32 texts of the train split, padded to their longest, shuffled each epoch."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    texts = open(f"{data_folder}/train_text.txt", encoding="utf-8", newline="").read().split("\n")[:-1]
    rng = random.Random(seed)
    while True:
        order = list(range(len(texts)))
        rng.shuffle(order)
        for i in range(0, len(order) - 31, 32):
            yield tokenizer([texts[k] for k in order[i:i + 32]], padding=True, truncation=True, max_length=512, return_tensors="pt")


def build(kind, model_folder):
    if kind == "minilm":
        return BertForSequenceClassification.from_pretrained(model_folder, num_labels=3)
    return RobertaForSequenceClassification(RobertaConfig(vocab_size=30522, max_position_embeddings=514, type_vocab_size=1, num_labels=3, layer_norm_eps=1e-5))
