// Masked language modelling: losses of twenty steps against PyTorch's with AdamW and LAMB, runs over shards from prepared text, resume bit
// for bit, evaluation.
#include "train/pretraining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <cstddef>
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // GCC ships the function, not its header
#endif
#include <thread>

#include "data/prepare.h"
#include "models/classifier.h"
#include "storage/file.h"
#include "train/checkpoint.h"
#include "train/gradient_norm.h"
#include "train/meter.h"
#include "train/optimizer.h"
#include "train/trainer.h"
#include "train/world.h"

namespace muster::train {
namespace {

using nlohmann::json;
using testing::HasSubstr;

data::PretrainingBatch batch_of(const json& golden) {
  data::PretrainingBatch batch;
  for (const json& s : golden["sequences"])
    batch.tokens.append(s["ids"].get<std::vector<int32_t>>(), s.value("type_ids", std::vector<int32_t>()));
  for (const json& m : golden["masked"]) {
    batch.masked_positions.push_back(batch.tokens.cu_seqlens[m[0].get<size_t>()] + m[1].get<int32_t>());
    batch.masked_labels.push_back(m[2].get<int32_t>());
  }
  batch.next_sentence = golden["next_labels"].get<std::vector<int32_t>>();
  return batch;
}

class TwentySteps : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

TEST_P(TwentySteps, LossesAreThoseOfPyTorch) {
  const auto& [backend, model, optimizer_name] = GetParam();
  const std::string folder = std::string(MUSTER_TEST_DATA) + "/models/" + model;
  const json golden = json::parse(std::ifstream(folder + "/golden.json"));
  models::ModelConfig config = models::read_config(folder);
  config.hidden_dropout = config.attention_dropout = 0;
  models::LoadReport report;
  const models::Parameters parameters = models::load_parameters(folder, config, {}, report);
  TrainingArguments a;
  const json& hyper = golden["hyper_parameters"];
  a.optim = optimizer_name == "lamb" ? Optimizer::lamb : Optimizer::adamw;
  a.adam_beta1 = hyper["beta1"], a.adam_beta2 = hyper["beta2"], a.adam_epsilon = hyper["epsilon"], a.weight_decay = hyper["weight_decay"];
  ThreadPool threads(2);
  runtime::Options options;
  options.backend = backend, options.precision = runtime::Precision::f32;
  runtime::Session session(runtime::compile(build_pretraining(config), options, threads), parameters);
  models::Parameters gradients;
  runtime::TensorMap outputs;
  for (const auto& slot : session.signature().parameters) {
    gradients[slot.name] = Tensor(DType::f32, parameters.find(slot.name)->second.shape());
    outputs["grad:" + slot.name] = gradients[slot.name];
  }
  OptimizerStep optimizer(parameters, a, options, threads);
  const json& losses = golden[optimizer_name == "lamb" ? "lamb_steps" : "steps"];
  for (size_t step = 0; step < losses.size(); ++step) {
    const data::PretrainingBatch batch = batch_of(golden["batches"][step % golden["batches"].size()]);
    const auto inputs = pretraining_inputs(config, batch, static_cast<int64_t>(batch.masked_labels.size()), batch.tokens.sequences());
    const auto& out = session.run_into(inputs, outputs, 1, false);
    const double expected = losses[step].get<double>();
    EXPECT_NEAR(out.at("loss").as<float>()[0], expected, 1e-4 * std::abs(expected)) << "step " << step;
    const double clip = optimizer_name == "lamb" ? clip_factor(global_norm(gradients, threads), 1.0) : 1.0;
    optimizer.update(gradients, static_cast<int64_t>(step) + 1, hyper["learning_rate"], clip);
    session.parameters_changed();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TwentySteps,
                         testing::Combine(testing::Values("ref", "cpu"),
                                          testing::Values("bert_pretraining", "roberta_mlm", "distilbert_mlm"),
                                          testing::Values("adamw", "lamb")),
                         [](const auto& p) { return std::get<0>(p.param) + "_" + std::get<1>(p.param) + "_" + std::get<2>(p.param); });

/// Shards of a small text, its tokenizer, and a tiny model from scratch.
class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "muster_corpus_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n";
    for (int w = 0; w < 40; ++w) vocab += "w" + std::to_string(w) + "\n";
    storage::make_folders(root_ + "/tokenizer");
    storage::write_file_atomic(root_ + "/tokenizer/vocab.txt", vocab);
    storage::write_file_atomic(root_ + "/tokenizer/tokenizer_config.json",
                               R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true})");
    tokenizer_.emplace(text::Tokenizer::load(root_ + "/tokenizer"));
    Philox random(5);
    std::vector<data::Document> documents;
    for (int d = 0; d < 30; ++d) {
      data::Document document;
      for (int s = 0; s < 12; ++s) {  // words that follow each other, so that there is something to learn
        std::string sentence;
        uint32_t w = random.below(40);
        for (int i = 0; i < 6; ++i) sentence += "w" + std::to_string(w) + " ", w = (w + 1) % 40;
        document.push_back(sentence + ".");
      }
      documents.push_back(std::move(document));
    }
    options_.output = root_ + "/shards", options_.max_seq_length = 32, options_.max_predictions = 5, options_.shards = 3,
    options_.test_fraction = 0.1;
    options_.dupe_factor = 2;
    data::prepare(documents, *tokenizer_, options_, threads_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  TrainInputs inputs(models::Head head = models::Head::pretraining) const {
    TrainInputs in;
    in.config = models::named_config("tiny");
    in.config.hidden_size = 32, in.config.heads = 2, in.config.intermediate_size = 64, in.config.max_position_embeddings = 40;
    in.config.vocab_size = tokenizer_->vocab_size();
    in.config.head = head;
    in.parameters = models::init_parameters(in.config, 1);
    in.tokenizer = &*tokenizer_;
    TrainInputs::Pretraining shards;
    shards.shards.files = data::list_shards(options_.output, "train");
    shards.eval_shards.files = data::list_shards(options_.output, "test");
    shards.shards.masking = shards.eval_shards.masking = data::masking_of(*tokenizer_);
    in.pretraining = std::move(shards);
    return in;
  }
  TrainingArguments arguments(const std::string& out) const {
    TrainingArguments a;
    a.output_dir = root_ + "/" + out;
    a.max_steps = 24, a.per_device_train_batch_size = 8, a.gradient_accumulation_steps = 2, a.learning_rate = 5e-3, a.fp32 = true;
    a.logging_steps = 6, a.save_strategy = Strategy::no;
    return a;
  }
  std::string weights(const std::string& out) const { return storage::read_file(root_ + "/" + out + "/model.safetensors"); }

  std::string root_;
  std::optional<text::Tokenizer> tokenizer_;
  data::PrepareOptions options_;
  mutable ThreadPool threads_{2};
};

TEST_F(Corpus, TheLossFallsAndTheFolderIsOfThatArchitecture) {
  std::vector<Record> records;
  TrainingArguments a = arguments("out");
  a.eval_strategy = Strategy::steps, a.eval_steps = 12;
  TrainInputs in = inputs();
  in.on_record = [&](const Record& r) { records.push_back(r); };
  const TrainResult result = train(a, std::move(in), threads_);
  EXPECT_EQ(result.global_step, 24);
  const auto value = [](const Record& r, const std::string& name) {
    for (const auto& [key, v] : r.values)
      if (key == name) return v;
    return std::nan("");
  };
  std::vector<double> losses, evaluations;
  for (const Record& r : records) {
    if (!std::isnan(value(r, "mlm_loss"))) losses.push_back(value(r, "mlm_loss"));
    if (!std::isnan(value(r, "eval_mlm_loss"))) evaluations.push_back(value(r, "eval_mlm_loss"));
  }
  ASSERT_EQ(losses.size(), 4u);
  EXPECT_LT(losses.back(), losses.front());
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_LT(evaluations[1], evaluations[0]);
  const models::ModelConfig config = models::read_config(root_ + "/out");
  EXPECT_EQ(models::architecture_of(config), "BertForPreTraining");
  EXPECT_THAT(storage::read_file(root_ + "/out/model.safetensors"), HasSubstr("cls.seq_relationship.weight"));
}

TEST_F(Corpus, ResumedRunsAndAnyThreadsGiveTheSameBits) {
  for (const Optimizer optimizer : {Optimizer::adamw, Optimizer::lamb}) {
    const std::string name(name_of(optimizer));
    TrainingArguments whole = arguments(name + "_whole");
    whole.optim = optimizer, whole.weight_decay = 0.01;
    ThreadPool one(1);
    TrainInputs remasked = inputs();
    remasked.pretraining->shards.remask = true;
    train(whole, remasked, one);
    TrainingArguments parts = whole;
    parts.output_dir = root_ + "/" + name + "_parts";
    for (const int64_t steps : {5, 9, 30}) {
      parts.steps_this_run = steps;
      TrainInputs again = inputs();
      again.pretraining->shards.remask = true;
      const TrainResult r = train(parts, std::move(again), threads_);
      EXPECT_EQ(r.outcome, steps == 30 ? Outcome::finished : Outcome::interrupted);
      parts.resume_from_checkpoint = "latest";
    }
    EXPECT_EQ(weights(name + "_parts"), weights(name + "_whole")) << name;
  }
}

/// Bytes: resident; under a sanitizer, which keeps what was freed, those allocated.
double memory_in_use() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return static_cast<double>(__sanitizer_get_current_allocated_bytes());
#else
  return memory_use().now;
#endif
}

/// Killed without warning wherever it happens to be: compiling, in a step, while a checkpoint is written or renamed.
TEST_F(Corpus, KilledAgainAndAgainItEndsWithTheSameBits) {
  TrainingArguments whole = arguments("whole");
  whole.max_steps = 60;
  train(whole, inputs(), threads_);
  TrainingArguments parts = whole;
  parts.output_dir = root_ + "/parts";
  parts.save_strategy = Strategy::steps, parts.save_steps = 1, parts.save_total_limit = 3;
  parts.resume_from_checkpoint = "auto";
  int kills = 0;
  bool done = false;
  std::set<std::string> resumed_at;
  for (int round = 0; !done && round < 100; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int code = 1;
      try {
        ThreadPool threads(2);
        code = train(parts, inputs(), threads).outcome == Outcome::finished ? 0 : 2;
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
      _exit(code);
    }
    // Every fourth one is killed soon after its start; the others some time after a new checkpoint, so that the run gets on.
    int status = 0;
    const auto newest = [&] {
      const auto checkpoints = list_checkpoints(parts.output_dir);
      return checkpoints.empty() ? std::string() : checkpoints.front();
    };
    const std::string before = newest();
    bool ended = false;
    while (round % 4 != 3 && !ended && newest() == before) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ended = waitpid(child, &status, WNOHANG) == child;
    }
    if (!ended) {
      std::this_thread::sleep_for(std::chrono::milliseconds(round * 37 % 61));
      ended = waitpid(child, &status, WNOHANG) == child;
    }
    if (!ended) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    done = WIFEXITED(status);
    if (done) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
    } else {
      ++kills;
      const auto checkpoints = list_checkpoints(parts.output_dir);
      if (!checkpoints.empty()) resumed_at.insert(checkpoints.front());
    }
  }
  ASSERT_TRUE(done);
  EXPECT_GE(kills, 2);
  EXPECT_FALSE(resumed_at.empty());
  EXPECT_EQ(weights("parts"), weights("whole"));
}

TEST_F(Corpus, AThousandStepsKeepMemoryAndDescriptorsFlat) {
  TrainingArguments a = arguments("long");
  a.max_steps = 1000, a.gradient_accumulation_steps = 1, a.logging_steps = 100;
  a.save_strategy = a.eval_strategy = Strategy::steps;
  a.save_steps = 50, a.eval_steps = 250, a.save_total_limit = 2;
  std::vector<double> memory;
  std::vector<int64_t> descriptors;
  TrainInputs in = inputs();
  in.pretraining->shards.remask = true;
  in.on_record = [&](const Record& r) {
    if (r.values.front().first != "loss") return;
    memory.push_back(memory_in_use() / 1e6);
    descriptors.push_back(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  };
  train(a, std::move(in), threads_);
  ASSERT_EQ(memory.size(), 10u);
  // The first lines belong to buffers that grow to the longest batch; a checkpoint being written has a descriptor and copies of its own.
  const double early = *std::max_element(memory.begin() + 1, memory.begin() + 4);
  const double late = *std::max_element(memory.begin() + 7, memory.end());
  EXPECT_LT(late, early + 4) << "MB";
  EXPECT_LE(*std::max_element(descriptors.begin() + 5, descriptors.end()), *std::min_element(descriptors.begin(), descriptors.end()) + 4);
}

TEST_F(Corpus, AnotherCheckpointsShardsOrMasksAreRefused) {
  TrainingArguments a = arguments("out");
  a.steps_this_run = 3;
  train(a, inputs(), threads_);
  a.resume_from_checkpoint = "latest";
  TrainInputs other = inputs();
  other.pretraining->shards.remask = true;
  EXPECT_THROW(train(a, std::move(other), threads_), Error);
}

TEST_F(Corpus, AnUnknownMetricIsRefusedBeforeTheFirstStepAndLessPerplexityIsBetter) {
  TrainingArguments a = arguments("out");
  a.eval_strategy = Strategy::steps, a.metric_for_best_model = "f1_macro";
  try {
    train(a, inputs(), threads_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_THAT(e.what(), HasSubstr("eval_perplexity"));
  }
  a.metric_for_best_model = "perplexity";
  EXPECT_FALSE(best_metric(a).greater_is_better);
}

TEST_F(Corpus, AModelThatPredictsTheNextSentenceNeedsLabels) {
  options_.pairs = false, options_.output = root_ + "/blocks";
  const data::Document document{"w1 w2 w3 w4 w5 w6 w7 w8 .", "w2 w3 w4 w5 w6 .", "w7 w8 w9 w10 w11 w12 ."};
  data::prepare(std::vector<data::Document>(40, document), *tokenizer_, options_, threads_);
  TrainInputs in = inputs();
  in.pretraining->shards.files = data::list_shards(options_.output, "train");
  try {
    train(arguments("out"), std::move(in), threads_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("no next-sentence labels"));
  }
  TrainInputs without = inputs(models::Head::masked_lm);
  without.pretraining->shards.files = data::list_shards(options_.output, "train");
  EXPECT_EQ(train(arguments("blocks_out"), std::move(without), threads_).global_step, 24);
}

TEST_F(Corpus, FineTuningStartsFromThePretrainedEncoder) {
  TrainingArguments a = arguments("out");
  train(a, inputs(), threads_);
  models::ModelConfig config = models::read_config(root_ + "/out");
  models::set_labels(config, {"a", "b"});
  models::LoadReport report;
  const models::Parameters parameters = models::load_parameters(root_ + "/out", config, {}, report);
  EXPECT_THAT(report.initialised, testing::Each(testing::StartsWith("classifier.")));
  EXPECT_NO_THROW((void)models::build_classifier(config));
}

}  // namespace
}  // namespace muster::train
