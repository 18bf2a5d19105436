"""The score of a linear model (TF-IDF of words and pairs + logistic regression) on the demo's splits: the floor that scripts/demo prints.
Usage: linear_floor.py DATA_FOLDER ...   (needs scikit-learn; not part of the build or the tests)"""
import sys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

for folder in sys.argv[1:]:
    lines = lambda name: open(f"{folder}/{name}", encoding="utf-8", newline="").read().split("\n")[:-1]
    train = lines("train_text.txt") + lines("val_text.txt")
    labels = lines("train_labels.txt") + lines("val_labels.txt")
    tfidf = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    model = LogisticRegression(C=10, max_iter=2000).fit(tfidf.fit_transform(train), labels)
    predicted = model.predict(tfidf.transform(lines("test_text.txt")))
    truth = lines("test_labels.txt")
    print(f"{folder}: accuracy {accuracy_score(truth, predicted):.3f} macro-F1 {f1_score(truth, predicted, average='macro'):.3f}")
