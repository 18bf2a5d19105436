#include "train/world.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/philox.h"
#include "storage/file.h"

namespace muster::train {
namespace {

const std::vector<std::vector<std::string>> kTelling{{"awful", "bad", "hate"}, {"table", "train", "seven"}, {"good", "great", "love"}};
const std::vector<std::string> kFiller{"the",  "a",    "it",  "is", "was", "on",  "my", "day",
                                       "this", "that", "and", "so", "we",  "you", "at", "home"};

text::Tokenizer make_tokenizer(const std::string& folder) {
  std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (const auto& group : kTelling)
    for (const auto& word : group) vocab += word + "\n";
  for (const auto& word : kFiller) vocab += word + "\n";
  storage::make_folders(folder);
  storage::write_file_atomic(folder + "/vocab.txt", vocab);
  storage::write_file_atomic(folder + "/tokenizer_config.json",
                             R"({"tokenizer_class":"BertTokenizer","do_lower_case":true,"model_max_length":32})");
  return text::Tokenizer::load(folder);
}

models::ModelConfig make_config(double dropout) {
  models::ModelConfig config;
  config.vocab_size = 32;
  config.hidden_size = 32;
  config.layers = 2;
  config.heads = 2;
  config.intermediate_size = 64;
  config.max_position_embeddings = 32;
  config.hidden_dropout = config.attention_dropout = config.classifier_dropout = dropout;
  config.initializer_range = 0.1;
  models::set_labels(config, {"negative", "neutral", "positive"});
  return config;
}

}  // namespace

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-train-XXXXXX").string();
  root_ = ::mkdtemp(pattern.data());
}
Folder::~Folder() { std::filesystem::remove_all(root_); }

nlohmann::json golden(const std::string& name) {
  return nlohmann::json::parse(storage::read_file(std::string(MUSTER_TEST_DATA) + "/" + name));
}

std::string message_of(ErrorKind kind, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

void expect_same(const models::Parameters& a, const models::Parameters& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    ASSERT_NE(other, b.end()) << name;
    ASSERT_EQ(tensor.shape(), other->second.shape()) << name;
    EXPECT_EQ(std::memcmp(tensor.data(), other->second.data(), tensor.bytes()), 0) << name;
  }
}

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : storage::list_tree(folder))
    if (entry.kind == storage::TreeEntry::Kind::file) files[entry.name] = storage::read_file(folder + "/" + entry.name);
  return files;
}

data::Dataset made_up_texts(size_t rows, uint64_t seed, const std::string& file) {
  data::Dataset dataset;
  Philox random(seed);
  for (size_t row = 0; row < rows; ++row) {
    const uint32_t label = random.below(3), words = 2 + random.below(9), place = random.below(words);
    std::string text;
    for (uint32_t w = 0; w < words; ++w) {
      const auto& from = w == place ? kTelling[label] : kFiller;
      text += (w ? " " : "") + from[random.below(static_cast<uint32_t>(from.size()))];
    }
    dataset.texts.push_back(text);
    dataset.labels.push_back(static_cast<int32_t>(label));
    dataset.lines.push_back(static_cast<int64_t>(row) + 1);
  }
  dataset.parts.push_back({file, 0});
  dataset.label_names = {"negative", "neutral", "positive"};
  return dataset;
}

World::World(size_t rows, double dropout)
    : config(make_config(dropout)),
      start(models::init_parameters(config, 3)),
      tokenizer(make_tokenizer(folder.path("tokenizer"))),
      train_data(made_up_texts(rows, 1, "train_text.txt")),
      eval_data(made_up_texts(24, 2, "val_text.txt")) {}

TrainInputs World::inputs(bool with_eval) const {
  TrainInputs in;
  in.config = config;
  for (const auto& [name, tensor] : start) in.parameters[name] = tensor.clone();
  in.model_name = "tiny";
  in.data_name = "made-up";
  in.tokenizer = &tokenizer;
  in.train = &train_data;
  in.eval = with_eval ? &eval_data : nullptr;
  return in;
}

TrainingArguments World::arguments(const std::string& output) const {
  TrainingArguments a;
  a.output_dir = folder.path(output);
  a.num_train_epochs = 2;
  a.learning_rate = 2e-3;
  a.warmup_ratio = 0.1;
  a.weight_decay = 0.01;
  a.logging_steps = 3;
  a.save_strategy = Strategy::no;
  a.fp32 = true;
  return a;
}

TrainResult World::run(const TrainingArguments& arguments, const std::function<void(TrainInputs&)>& change) const {
  TrainInputs in = inputs();
  if (change) change(in);
  return train(arguments, std::move(in), threads);
}

}  // namespace muster::train
