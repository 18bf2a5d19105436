// Metrics against scikit-learn, TweetEval's choice among them, and how they are printed.
#include "train/metrics.h"

#include "train/report.h"
#include "train/world.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

TEST(Metrics, are_those_of_scikit_learn) {
  for (const auto& c : golden("train/metrics.json")) {
    const auto labels = c["labels"].get<std::vector<int32_t>>(), predictions = c["predictions"].get<std::vector<int32_t>>();
    const Metrics m = compute_metrics(labels, predictions, c["classes"]);
    EXPECT_EQ(m.rows, static_cast<int64_t>(labels.size()));
    EXPECT_EQ(nlohmann::json(m.confusion), c["confusion"]);
    for (const auto& [name, value] : scalars(m)) EXPECT_NEAR(value, c[name].get<double>(), 1e-12) << name;
    for (size_t k = 0; k < m.classes.size(); ++k) {
      EXPECT_NEAR(m.classes[k].precision, c["precision"][k].get<double>(), 1e-12);
      EXPECT_NEAR(m.classes[k].recall, c["recall"][k].get<double>(), 1e-12);
      EXPECT_NEAR(m.classes[k].f1, c["f1"][k].get<double>(), 1e-12);
      EXPECT_EQ(m.classes[k].support, c["support"][k].get<int64_t>());
    }
  }
}

TEST(Metrics, rows_without_label_do_not_count) {
  const Metrics m = compute_metrics(std::vector<int32_t>{0, -1, 1}, std::vector<int32_t>{0, 1, 0}, 2);
  EXPECT_EQ(m.rows, 2);
  EXPECT_EQ(m.accuracy, 0.5);
}

TEST(Metrics, nothing_gives_zeros_and_wrong_input_an_error) {
  EXPECT_EQ(compute_metrics({}, {}, 3).f1_macro, 0);
  message_of(ErrorKind::invalid_argument, [] { compute_metrics(std::vector<int32_t>{0}, {}, 2); });
  message_of(ErrorKind::invalid_argument, [] { compute_metrics(std::vector<int32_t>{2}, std::vector<int32_t>{0}, 2); });
  message_of(ErrorKind::invalid_argument, [] { compute_metrics(std::vector<int32_t>{0}, std::vector<int32_t>{-1}, 2); });
}

TEST(TweetEval, each_task_has_its_metric) {
  const Metrics two = compute_metrics(std::vector<int32_t>{0, 0, 1, 1, 1}, std::vector<int32_t>{0, 1, 1, 1, 0}, 2);
  EXPECT_NEAR(tweeteval_metric("irony", two)->second, 2.0 / 3, 1e-12);
  EXPECT_NEAR(tweeteval_metric("hate", two)->second, (0.5 + 2.0 / 3) / 2, 1e-12);
  const Metrics three = compute_metrics(std::vector<int32_t>{0, 0, 1, 2, 2, 2}, std::vector<int32_t>{0, 1, 1, 2, 2, 0}, 3);
  EXPECT_NEAR(tweeteval_metric("sentiment", three)->second, (0.5 + 1.0 + 2.0 / 3) / 3, 1e-12);
  EXPECT_NEAR(tweeteval_metric("stance", three)->second, (2.0 / 3 + 0.8) / 2, 1e-12);
  EXPECT_EQ(tweeteval_metric("news", three), std::nullopt);
  EXPECT_EQ(tweeteval_metric("stance", two), std::nullopt);
}

TEST(TweetEval, the_task_is_in_the_path) {
  EXPECT_EQ(tweeteval_task("datasets/emotion"), "emotion");
  EXPECT_EQ(tweeteval_task("datasets/stance/abortion/"), "stance");
  EXPECT_EQ(tweeteval_task("irony"), "irony");
  EXPECT_EQ(tweeteval_task("my-irony-data/train.csv"), "");
}

TEST(Report, table_and_json_say_the_same) {
  Evaluation e;
  e.rows = 5, e.classes = 2, e.has_labels = true, e.loss = 0.5;
  e.metrics = compute_metrics(std::vector<int32_t>{0, 0, 1, 1, 1}, std::vector<int32_t>{0, 1, 1, 1, 0}, 2);
  const std::vector<std::string> labels{"non_irony", "irony"};
  const std::string table = metrics_table(e, labels, "irony");
  EXPECT_THAT(table, HasSubstr("TweetEval irony: f1_irony 0.6667"));
  EXPECT_THAT(table, HasSubstr("\nirony             0.6667   0.6667   0.6667        3\n"));
  EXPECT_THAT(table, HasSubstr("\n1 irony             1       2\n"));
  const auto json = nlohmann::json::parse(metrics_json(e, labels, "irony"));
  EXPECT_EQ(json["rows"], 5);
  EXPECT_EQ(json["accuracy"], 0.6);
  EXPECT_EQ(json["classes"][1]["label"], "irony");
  EXPECT_EQ(json["confusion"], (nlohmann::json{{1, 1}, {1, 2}}));
  EXPECT_EQ(json["tweeteval"]["metric"], "f1_irony");
  e.has_labels = false;
  EXPECT_THAT(metrics_table(e, labels), HasSubstr("no labels"));
  EXPECT_FALSE(nlohmann::json::parse(metrics_json(e, labels)).contains("loss"));
}

}  // namespace
}  // namespace muster::train
