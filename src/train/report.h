// Metrics as people and scripts read them: a text table and JSON.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "train/evaluate.h"
#include "train/metrics.h"

namespace muster::train {

/// Per-class table, averages and confusion matrix in plain text, a few dozen lines at most; with TweetEval's metric when `task` is one.
std::string metrics_table(const Evaluation& evaluation, const std::vector<std::string>& labels, std::string_view task = {});

/// The same as a JSON object of one line: {"rows":..,"loss":..,"accuracy":..,"f1_macro":..,"classes":[{"label":..,"precision":..}],
/// "confusion":[[..]],"tweeteval":{"task":..,"metric":..,"value":..}}.
std::string metrics_json(const Evaluation& evaluation, const std::vector<std::string>& labels, std::string_view task = {});

}  // namespace muster::train
