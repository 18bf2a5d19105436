// Every verb from start to end on a tiny model, as processes, and what it says when something is wrong.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/trained_model.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Verbs : public TrainedModel {};

TEST_F(Verbs, TrainLeavesAWholeModelFolder) {
  for (const char* name : {"config.json", "model.safetensors", "vocab.txt", "metrics.jsonl", "train_results.json", "README.md"})
    EXPECT_TRUE(std::filesystem::exists(path(std::string("out/") + name))) << name;
  EXPECT_EQ(nlohmann::json::parse(read(path("out/config.json")))["id2label"]["1"], "good");
  EXPECT_THAT(train_log_, HasSubstr("initialised, not in the checkpoint: "));
  EXPECT_EQ(train_log_.find('\r'), std::string::npos) << "no terminal: plain lines";
}

TEST_F(Verbs, EvalScoresAndWritesPredictions) {
  const Finished text = run({"eval", "--model", path("out"), "--data", path("data"), "--split", "test"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("confusion"));
  const Finished json = run({"eval", "--model", path("out"), "--data", path("data"), "--json", "--output_file", path("predictions.txt")});
  const auto metrics = nlohmann::json::parse(json.out);
  EXPECT_GT(metrics["accuracy"].get<double>(), 0.95) << "the words decide: a model that learned finds them";
  const std::string predictions = read(path("predictions.txt"));
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 200);
  EXPECT_THAT(predictions, HasSubstr("good\n"));
}

TEST_F(Verbs, PredictTakesArgumentsFilesAndStandardInput) {
  const Finished one = run({"predict", "--model", path("out"), "the day was lovely", "awful film"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, StartsWith("good\t"));
  EXPECT_THAT(one.out, HasSubstr("\nbad\t"));
  write(path("texts.txt"), "the day was lovely\r\nawful film\n");
  EXPECT_EQ(run({"predict", "--model", path("out"), "--file", path("texts.txt")}).out, one.out);
  Start piped;
  piped.arguments = {"predict", "--model", path("out")};
  piped.input = "the day was lovely\nawful film";
  EXPECT_EQ(run(piped).out, one.out);
  const Finished json = run({"predict", "--model", path("out"), "--json", "awful film"});
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["label"], "bad");
  EXPECT_NEAR(answer["scores"]["bad"].get<double>() + answer["scores"]["good"].get<double>(), 1, 1e-6);
  const auto logits = nlohmann::json::parse(run({"predict", "--model", path("out"), "--logits", "awful film"}).out);
  EXPECT_NEAR(1 / (1 + std::exp(logits["logits"]["good"].get<double>() - logits["logits"]["bad"].get<double>())),
              answer["scores"]["bad"].get<double>(), 1e-5);
  EXPECT_EQ(run({"predict", "--model", path("out"), "--batch_size", "1", "the day was lovely", "awful film"}).out, one.out)
      << "the batch must not matter";
}

TEST_F(Verbs, TokenizePrintsJsonLines) {
  const Finished t = run({"tokenize", "--model", path("out"), "A lovely day"});
  EXPECT_EQ(t.code, 0) << t.err;
  const auto line = nlohmann::json::parse(t.out);
  EXPECT_EQ(line["tokens"].dump(), R"(["[CLS]","a","lovely","day","[SEP]"])");
  EXPECT_EQ(line["offsets"].dump(), "[[0,0],[0,1],[2,8],[9,12],[0,0]]");
  EXPECT_EQ(line["ids"].size(), 5U);
  // Offsets of a pair are each in its own text; the second is longer than the first and not ASCII.
  const Finished pair = run({"tokenize", "--model", path("out"), "a", "--pair", "\u00e9\u00e9 the lovely day", "--char_offsets"});
  ASSERT_EQ(pair.code, 0) << pair.err;
  EXPECT_EQ(nlohmann::json::parse(pair.out)["offsets"].dump(), "[[0,0],[0,1],[0,0],[0,2],[3,6],[7,13],[14,17],[0,0]]");
}

TEST_F(Verbs, PackageServePredictStop) {
  write(path("out/code/inference.py"), "# carried along\n");
  const std::string archive = path("model.tar.gz");
  ASSERT_EQ(run({"package", "--model", path("out"), "--output", archive}).code, 0);
  const std::string bytes = read(archive);
  const Finished again = run({"package", "--model", path("out"), "--output", archive});
  EXPECT_EQ(again.code, 2) << "never replaced silently";
  EXPECT_THAT(again.err, HasSubstr("--force"));
  ASSERT_EQ(run({"package", "--model", path("out"), "--output", archive, "--force"}).code, 0);
  EXPECT_EQ(read(archive), bytes) << "reproducible";

  Start start;
  start.arguments = {"serve", "--model", archive, "--port", "0"};
  Process server(start);
  ASSERT_TRUE(server.wait_for(" on http://127.0.0.1:")) << server.error_so_far();
  const std::string said = server.error_so_far();
  const std::string url = said.substr(said.find("http://"), said.find('\n', said.find("http://")) - said.find("http://"));
  const Finished remote = run({"predict", "--url", url, "the day was lovely", "awful film"});
  EXPECT_EQ(remote.code, 0) << remote.err;
  EXPECT_EQ(remote.out, run({"predict", "--model", archive, "the day was lovely", "awful film"}).out) << "by server and by folder";
  EXPECT_EQ(run({"predict", "--url", url, "--logits", "awful film"}).out,
            run({"predict", "--model", path("out"), "--logits", "awful film"}).out);
  server.signal(SIGTERM);
  const Finished stopped = server.finish();
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("SIGTERM"));
  const Finished gone = run({"predict", "--url", url, "x"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr(url));
}

TEST_F(Verbs, ServeRefusesAPackageWhoseHashesDoNotMatch) {
  Folder other;
  std::filesystem::copy(path("out"), other / "model");
  const std::string archive = other / "a.tar.gz";
  ASSERT_EQ(run({"package", "--model", other / "model", "--output", archive}).code, 0);
  ASSERT_EQ(std::system(
                ("mkdir " + (other / "u") + " && tar xzf " + archive + " -C " + (other / "u") + " && echo >> " + (other / "u/config.json"))
                    .c_str()),
            0);
  const Finished refused = run({"serve", "--model", other / "u", "--port", "0"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("config.json"));
}

TEST_F(Verbs, ASecondRunOnTheSameFolderIsRefused) {
  const std::string before = read(path("out/model.safetensors"));
  const Finished second = run(train_arguments("out"));
  EXPECT_NE(second.code, 0);
  EXPECT_THAT(second.err, HasSubstr("overwrite_output_dir"));
  EXPECT_EQ(read(path("out/model.safetensors")), before);
}

TEST_F(Verbs, ThreadsAndResumeLeaveTheSameBits) {
  std::vector<std::string> one = train_arguments("one"), five = train_arguments("five");
  for (auto* arguments : {&one, &five})
    arguments->insert(arguments->end(), {"--save_strategy", "steps", "--save_steps", "4", "--threads", arguments == &one ? "1" : "3"});
  ASSERT_EQ(run(one).code, 0);
  const std::string wanted = read(path("one/model.safetensors"));
  // Killed without warning after the checkpoint of some step, then resumed, again and again.
  for (int kills = 0; kills < 3; ++kills) {
    Start start;
    start.arguments = five;
    if (kills > 0) start.arguments.insert(start.arguments.end(), {"--resume_from_checkpoint", "latest"});
    Process process(start);
    (void)process.wait_for("step " + std::to_string(8 + kills * 10) + "/");
    process.signal(SIGKILL);
    (void)process.finish();
  }
  std::vector<std::string> last = five;
  last.insert(last.end(), {"--resume_from_checkpoint", "latest"});
  const Finished done = run(last);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(read(path("five/model.safetensors")), wanted);
}

TEST_F(Verbs, SigtermSavesAndExits143) {
  std::vector<std::string> arguments = train_arguments("stopped");
  arguments.insert(arguments.end(), {"--num_train_epochs", "2000"});
  Start start;
  start.arguments = arguments;
  Process process(start);
  ASSERT_TRUE(process.wait_for("step 5/"));
  std::vector<std::string> meanwhile = arguments;
  meanwhile.insert(meanwhile.end(), {"--overwrite_output_dir", "true"});
  const Finished second = run(meanwhile);
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr("in use by another muster train"));
  process.signal(SIGTERM);
  const Finished stopped = process.finish();
  EXPECT_EQ(stopped.code, 143) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("--resume_from_checkpoint latest"));
  EXPECT_THAT(names(path("stopped")), testing::Contains(StartsWith("checkpoint-")));
  EXPECT_FALSE(std::filesystem::exists(path("stopped/model.safetensors"))) << "no final model of an unfinished run";
}

TEST_F(Verbs, AFullDiskIsOneLineAndLeavesNothingHalf) {
  Start start;
  start.arguments = train_arguments("full");
  start.file_size_limit = 20000;
  const Finished full = run(start);
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("error: "));
  EXPECT_FALSE(std::filesystem::exists(path("full/model.safetensors")));
}

TEST_F(Verbs, FlagsFromYamlAndTheCommandLineWins) {
  write(path("flags.yaml"), "learning_rate: 5e-3\nnum-train-epochs: 7\nmax_steps: 2\nbf16: false\n");
  const Finished result = run({"train", "--config", path("flags.yaml"), "--model", path("model"), "--data", path("data"), "--output_dir",
                               path("yaml"), "--max_steps", "3", "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["global_step"], 3);
  write(path("bad.yaml"), "learning_rate: [\n");
  const Finished bad = run({"train", "--config", path("bad.yaml")});
  EXPECT_NE(bad.code, 0);
  EXPECT_THAT(bad.err, HasSubstr("bad.yaml:"));
}

struct Wrong {
  std::vector<std::string> arguments;
  int code;
  std::string says;
};

TEST_F(Verbs, WrongUseIsOneLineThatSaysWhatToDo) {
  write(path("empty.csv"), "");
  write(path("open.csv"), "text,label\n\"never closed,good\n");
  const std::vector<Wrong> table{
      {{"trian"}, 2, "'trian' is unknown (did you mean train?)"},
      {{"--verison"}, 2, "did you mean --version?"},
      {{"train", "--lerning-rate=3"}, 2, "--lerning_rate is unknown (did you mean --learning_rate?)"},
      {{"train", "--data", path("data"), "--bogus_flag", "1"}, 2, "bogus_flag"},
      {{"train", "--model", path("model"), "--output_dir", path("x")}, 2, "--data"},
      {{"train", "--data", path("data"), "--output_dir", path("x")}, 2, "--model"},
      {{"train", "--model", path("nowhere"), "--data", path("data"), "--output_dir", path("x")}, 1, "nowhere"},
      {{"train", "--model", path("model"), "--data", path("nowhere"), "--output_dir", path("x")}, 1, "nowhere"},
      {{"train", "--model", path("model"), "--data", path("empty.csv"), "--output_dir", path("x")}, 1, "empty.csv"},
      {{"train", "--model", path("model"), "--data", path("open.csv"), "--output_dir", path("x")}, 1, "open.csv:2"},
      {{"train", "--model", path("model"), "--data", path("data"), "--output_dir", path("x"), "--learning_rate", "fast"},
       2,
       "learning_rate"},
      {{"train", "--model", path("model"), "--data", path("data"), "--output_dir", path("x"), "--bf16", "--fp32"}, 2, "bf16"},
      {{"train", "--task", "translation", "--model", path("model"), "--data", path("data"), "--output_dir", path("x")}, 2, "translation"},
      {{"train", "-model", path("model"), "--data", path("data")}, 2, "-model is unknown (did you mean --model?)"},
      {{"train", "--model", path("out"), "--data", path("data"), "--output_dir", path("out") + "/", "--overwrite_output_dir"},
       2,
       "holds the model"},
      {{"train", "--model", path("out"), "--data", path("data"), "--output_dir", path(""), "--overwrite_output_dir"}, 2, "holds the model"},
      {{"eval", "--model", path("out"), "--data", path("data"), "--split", "exam"}, 1, "exam"},
      {{"eval", "--model", path("model"), "--data", path("data")}, 1, "muster train"},
      {{"eval", "--model", path("out"), "--data", path("data"), "--tweeteval_task", "ironic"}, 2, "irony"},
      {{"eval", "--model", path("out"), "--data", path("data"), "--output_numbers"}, 2, "--output_file"},
      {{"eval", "--model", path("out"), "--data", path("data"), "--max_seq_length", "-4"}, 2, "max_seq_length"},
      {{"eval", "--model", path("out"), "--data", path("data"), "--output_file", path("no/such.txt")}, 1, "no/such.txt"},
      {{"predict", "--model", path("out"), "--file", path("data")}, 1, "directory"},
      {{"package", "--model", path("out"), "--output", path("data")}, 2, "a file"},
      {{"predict", "text"}, 2, "--url"},
      {{"predict", "--url", "http://127.0.0.1:1", "text"}, 1, "127.0.0.1:1"},
      {{"predict", "--model", path("out"), "--file", path("none.txt")}, 1, "none.txt"},
      {{"predict", "--model", path("empty.csv"), "text"}, 1, "empty.csv"},
      {{"package", "--model", path("model"), "--output", path("p.tar.gz")}, 1, "muster train"},
      {{"package", "--model", path("out"), "--output", path("no/such/p.tar.gz")}, 1, "no/such"},
      {{"serve", "--model", path("nowhere")}, 1, "nowhere"},
      {{"serve", "--model", path("out"), "--port", "70000"}, 2, "port"},
      {{"completion", "fish"}, 2, "fish"},
  };
  for (const Wrong& wrong : table) {
    const Finished f = run(wrong.arguments);
    std::string line;
    for (const std::string& a : wrong.arguments) line += a + " ";
    EXPECT_EQ(f.code, wrong.code) << line << f.err;
    EXPECT_THAT(f.err, HasSubstr(wrong.says)) << line;
    EXPECT_THAT(f.err, HasSubstr("error: ")) << line;
    EXPECT_EQ(f.out, "") << line;
    EXPECT_FALSE(std::filesystem::exists(path("x/model.safetensors"))) << line;
  }
}

TEST_F(Verbs, FromPlainTextToAFineTunedModel) {
  std::string text;
  for (int d = 0; d < 40; ++d) text += "The day was lovely. We had a fine time. It was awful later. The film was bad.\n\n";
  write(path("corpus.txt"), text);
  const std::vector<std::string> prepare{"data",
                                         "prepare",
                                         "--input",
                                         path("corpus.txt"),
                                         "--tokenizer",
                                         path("model"),
                                         "--output",
                                         path("shards"),
                                         "--max_seq_length",
                                         "32",
                                         "--max_predictions_per_seq",
                                         "5",
                                         "--num_shards",
                                         "2",
                                         "--test_fraction",
                                         "0.1"};
  const Finished made = run(prepare);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(run(prepare).out, HasSubstr("(3 were there)"));
  std::vector<std::string> other = prepare;
  other.insert(other.end(), {"--seed", "1"});
  EXPECT_EQ(run(other).code, 1) << "shards of other options";
  const Finished counted = run({"data", "inspect", path("shards"), "--tokenizer", path("model"), "--json"});
  ASSERT_EQ(counted.code, 0) << counted.err;
  EXPECT_EQ(nlohmann::json::parse(counted.out)["shards"], 3);

  std::vector<std::string> train{"train",
                                 "--task",
                                 "masked_lm",
                                 "--config_name",
                                 "tiny",
                                 "--tokenizer",
                                 path("model"),
                                 "--data",
                                 path("shards"),
                                 "--output_dir",
                                 path("pretrained"),
                                 "--max_steps",
                                 "6",
                                 "--learning_rate",
                                 "1e-3",
                                 "--optim",
                                 "lamb",
                                 "--eval_strategy",
                                 "steps",
                                 "--eval_steps",
                                 "6",
                                 "--logging_steps",
                                 "3"};
  std::vector<std::string> part = train;
  part.insert(part.end(), {"--steps_this_run", "2"});
  const Finished paused = run(part);
  ASSERT_EQ(paused.code, 0) << paused.err;
  EXPECT_THAT(paused.err, HasSubstr("--resume_from_checkpoint latest goes on"));
  train.insert(train.end(), {"--resume_from_checkpoint", "latest"});
  const Finished trained = run(train);
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* name : {"mlm_loss", "nsp_loss", "eval_perplexity", "tokens_per_second"}) EXPECT_THAT(trained.err, HasSubstr(name));
  EXPECT_EQ(nlohmann::json::parse(read(path("pretrained/config.json")))["architectures"][0], "BertForPreTraining");
  const Finished scored = run({"eval", "--task", "masked_lm", "--model", path("pretrained"), "--data", path("shards"), "--json"});
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_NEAR(std::exp(nlohmann::json::parse(scored.out)["mlm_loss"].get<double>()),
              nlohmann::json::parse(scored.out)["perplexity"].get<double>(), 0.01);
  const Finished filled = run({"fill-mask", "--model", path("pretrained"), "--top_k", "3", "--json", "the [MASK] was lovely"});
  ASSERT_EQ(filled.code, 0) << filled.err;
  EXPECT_EQ(nlohmann::json::parse(filled.out)[0].size(), 3u);
  const Finished unmasked = run({"fill-mask", "--model", path("pretrained"), "no place"});
  EXPECT_EQ(unmasked.code, 1);
  EXPECT_THAT(unmasked.err, HasSubstr("write [MASK] where a word is wanted"));
  const Finished tuned = run({"train", "--model", path("pretrained"), "--data", path("data"), "--output_dir", path("tuned"), "--max_steps",
                              "2", "--save_strategy", "no"});
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  const Finished early = run({"predict", "--model", path("pretrained"), "fine"});
  EXPECT_EQ(early.code, 1);
  EXPECT_THAT(early.err, HasSubstr("BertForPreTraining, not a classifier"));

  // A shard that is cut off is named, or skipped and counted.
  const std::string shard = path("shards/corpus_training_0.hdf5");
  write(shard, read(shard).substr(0, 900));
  const Finished bad = run({"data", "inspect", path("shards")});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, HasSubstr("corpus_training_0.hdf5"));
  std::vector<std::string> again{"train",          "--task",      "masked_lm", "--config_name",   "tiny",
                                 "--tokenizer",    path("model"), "--data",    path("shards"),    "--output_dir",
                                 path("skipping"), "--max_steps", "1",         "--save_strategy", "no"};
  const Finished refused = run(again);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("corpus_training_0.hdf5"));
  again.emplace_back("--skip_bad_shards");
  const Finished skipped = run(again);
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("1 bad ones skipped"));
}

TEST_F(Verbs, AnArchiveNeedsATemporaryFolderAndLeavesNothingInIt) {
  const std::string archive = path("tmp.tar.gz");
  ASSERT_EQ(run({"package", "--model", path("out"), "--output", archive}).code, 0);
  Start start;
  start.arguments = {"predict", "--model", archive, "awful film"};
  start.environment = {{"TMPDIR", path("absent")}};
  const Finished refused = run(start);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("set TMPDIR"));

  std::filesystem::create_directory(path("tmp"));
  start.environment = {{"TMPDIR", path("tmp")}};
  EXPECT_EQ(run(start).code, 0);
  EXPECT_THAT(names(path("tmp")), testing::IsEmpty());
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  start.arguments = {"predict", "--model", archive, "--file", path("fifo")};
  Process waiting(start);  // for the first text
  const std::string texts = path("fifo");
  const int feed = open(texts.c_str(), O_WRONLY);  // returns when the model is there and the file is opened
  ASSERT_GE(feed, 0);
  EXPECT_THAT(names(path("tmp")), testing::SizeIs(1));
  waiting.signal(SIGINT);
  const Finished stopped = waiting.finish();
  close(feed);
  EXPECT_EQ(stopped.code, 130);
  EXPECT_EQ(stopped.err, "");
  EXPECT_THAT(names(path("tmp")), testing::IsEmpty());
}

TEST_F(Verbs, AnArchiveOfAFolderSaysWhereItsFilesMustBe) {
  ASSERT_EQ(std::system(("tar czf " + path("nested.tar.gz") + " -C " + path("") + " out").c_str()), 0);
  const Finished refused = run({"predict", "--model", path("nested.tar.gz"), "x"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("not at the root of the archive"));
}

TEST_F(Verbs, AFullOutputIsAnError) {
  const std::string command = std::string(MUSTER_PROGRAM) + " doctor > /dev/full 2>" + path("err");
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_THAT(read(path("err")), HasSubstr("standard output"));
}

TEST(Help, EveryVerbHasIt) {
  const Finished top = run({"--help"});
  EXPECT_EQ(top.code, 0);
  for (const char* verb : {"train", "eval", "package", "serve", "predict", "tokenize", "doctor", "completion"}) {
    EXPECT_THAT(top.out, HasSubstr(verb));
    const Finished help = run({verb, "--help"});
    EXPECT_EQ(help.code, 0) << verb;
    EXPECT_THAT(help.out, HasSubstr("--help")) << verb;
    EXPECT_EQ(help.err, "") << verb;
  }
  EXPECT_EQ(run({"help"}).out, top.out);
  EXPECT_EQ(run({"help", "train"}).out, run({"train", "--help"}).out);
  EXPECT_THAT(run({"--version"}).out, StartsWith("muster "));
  const Finished none = run(std::vector<std::string>{});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("train"));
}

TEST(Doctor, TellsTheMachine) {
  const auto facts = nlohmann::json::parse(run({"doctor", "--json"}).out);
  for (const char* key : {"processor", "isa", "cores", "memory", "precision", "missing"}) EXPECT_TRUE(facts.contains(key)) << key;
  Start lowered;
  lowered.arguments = {"doctor", "--json"};
  lowered.environment = {{"MUSTER_ISA", "avx2"}};
  EXPECT_EQ(nlohmann::json::parse(run(lowered).out)["isa"], "avx2");
  lowered.environment = {{"MUSTER_ISA", "sse9"}};
  EXPECT_EQ(run(lowered).code, 2);
}

TEST(Completion, BashCompletesVerbsAndFlags) {
  const std::string script = std::string("source <(") + MUSTER_PROGRAM +
                             " completion bash); COMP_WORDS=(muster tr); COMP_CWORD=1; _muster; echo ${COMPREPLY[@]}; COMP_WORDS=(muster "
                             "train --learn); COMP_CWORD=2; _muster; echo ${COMPREPLY[@]}";
  Folder folder;
  write(folder / "s.sh", script);
  ASSERT_EQ(std::system(("bash " + (folder / "s.sh") + " > " + (folder / "out")).c_str()), 0);
  EXPECT_EQ(read(folder / "out"), "train\n--learning_rate\n");
}

}  // namespace
}  // namespace muster::cli
