// A tiny model trained by the program itself, for tests of the verbs that use one.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/process.h"

namespace muster::cli {

/// One trained model for the tests of a suite.
class TrainedModel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<Folder>();
    make_data(*folder_ / "data", 200);
    make_model(*folder_ / "model");
    const Finished trained = run(train_arguments("out"));
    ASSERT_EQ(trained.code, 0) << trained.err;
    train_log_ = trained.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return *folder_ / name; }
  static std::vector<std::string> train_arguments(const std::string& out) {
    return {"train",
            "--task",
            "classification",
            "--model",
            path("model"),
            "--data",
            path("data"),
            "--output-dir",
            path(out),
            "--num_train_epochs",
            "3",
            "--learning-rate=5e-3",
            "--per_device_train_batch_size",
            "16",
            "--eval_strategy",
            "epoch",
            "--save_strategy",
            "no",
            "--logging_steps",
            "5"};
  }

  static inline std::unique_ptr<Folder> folder_;
  static inline std::string train_log_;
};

}  // namespace muster::cli
