// How good predictions are: confusion matrix and what follows from it, and the metric TweetEval ranks each of its tasks by.
// Definitions as in scikit-learn (zero_division = 0). How they are printed and written is report.h.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::train {

struct ClassMetrics {
  int64_t support = 0;    // rows of this class
  int64_t predicted = 0;  // rows predicted as this class
  double precision = 0, recall = 0, f1 = 0;
};

/// Averages are over the classes that occur among labels or predictions.
struct Metrics {
  int64_t rows = 0;
  std::vector<std::vector<int64_t>> confusion;  // [label][prediction]
  std::vector<ClassMetrics> classes;
  double accuracy = 0;
  double precision_macro = 0, recall_macro = 0, f1_macro = 0;
  double f1_weighted = 0;  // by support
};

/// Rows with a negative label are left out. Throws Error(invalid_argument) on another length or a value that is no class.
Metrics compute_metrics(std::span<const int32_t> labels, std::span<const int32_t> predictions, int64_t classes);

using NamedValue = std::pair<std::string, double>;
/// accuracy, f1_macro, f1_weighted, precision_macro, recall_macro: the names an evaluation logs, without "eval_".
std::vector<NamedValue> scalars(const Metrics& metrics);

/// The task a path of the TweetEval layout stands for ("datasets/stance/abortion" -> "stance"): empty when none.
std::string tweeteval_task(std::string_view path);

/// TweetEval's own metric (evaluation_script.py of cardiffnlp/tweeteval): macro-F1 for emoji, emotion, hate and offensive; F1 of class 1
/// for irony; macro recall for sentiment; the mean F1 of classes 1 and 2 for stance. None for another task, or one with too few classes.
std::optional<NamedValue> tweeteval_metric(std::string_view task, const Metrics& metrics);

}  // namespace muster::train
