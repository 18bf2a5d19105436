// A small world for the tests of this room: a tokenizer of a few dozen words, a model of a few thousand weights, texts whose label can be
// learned, and a folder to work in.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/threads.h"
#include "data/dataset.h"
#include "models/config.h"
#include "models/weights.h"
#include "text/tokenizer.h"
#include "train/trainer.h"

namespace muster::train {

/// A fresh folder, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::string root_;
};

/// tests/data/<name> as JSON.
nlohmann::json golden(const std::string& name);

/// Runs `action`, expects an Error of that kind, returns its message.
std::string message_of(ErrorKind kind, const std::function<void()>& action);

/// Same names, shapes and bits.
void expect_same(const models::Parameters& a, const models::Parameters& b);
/// The content of the files below two folders, by name, but for those in `except`.
std::map<std::string, std::string> files_of(const std::string& folder);

struct World {
  /// A model of `layers` x 32 with dropout, and `rows` training texts of three labels.
  explicit World(size_t rows = 48, double dropout = 0.1);

  [[nodiscard]] TrainInputs inputs(bool with_eval = true) const;
  [[nodiscard]] TrainingArguments arguments(const std::string& output) const;
  /// Trains with these arguments.
  TrainResult run(const TrainingArguments& arguments, const std::function<void(TrainInputs&)>& change = {}) const;

  Folder folder;
  models::ModelConfig config;
  models::Parameters start;  // copied for each run
  text::Tokenizer tokenizer;
  data::Dataset train_data, eval_data;
  mutable ThreadPool threads{2};
};

/// A dataset whose label is which of three groups of words a text has a word of.
data::Dataset made_up_texts(size_t rows, uint64_t seed, const std::string& file);

}  // namespace muster::train
