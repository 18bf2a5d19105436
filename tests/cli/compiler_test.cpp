// The compile cache, ahead-of-time compilation, explain and traces, as processes on a tiny model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/trained_model.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;

class CompilerVerbs : public TrainedModel {};

TEST_F(CompilerVerbs, ASecondStartCompilesNothing) {
  std::vector<std::string> arguments = train_arguments("cached");
  for (const char* word : {"--explain", "--max_steps", "2", "--eval_strategy", "no", "--overwrite_output_dir", "--compile_cache"})
    arguments.emplace_back(word);
  arguments.push_back(path("cache"));
  const Finished first = run(arguments), second = run(arguments);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("programs so far: 0 from the cache, 2 compiled"));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("programs so far: 2 from the cache, 0 compiled"));
  EXPECT_EQ(read(path("cached/model.safetensors")).size(), read(path("out/model.safetensors")).size());
}

TEST_F(CompilerVerbs, AWarmServerNeverOpensTheCodeGenerator) {
  ASSERT_EQ(run({"compile", "--model", path("out"), "--compile_cache", path("serve_cache")}).code, 0);
  const auto maps_of = [&](const std::string& cache) {
    Start start;
    start.arguments = {"serve", "--model", path("out"), "--port", "0", "--compile_cache", cache};
    start.environment["MUSTER_CODEGEN"] = cache == path("serve_cache") ? "/nowhere/libmuster_codegen.so" : "";
    Process server(start);
    EXPECT_TRUE(server.wait_for(" on http://127.0.0.1:")) << server.error_so_far();
    EXPECT_EQ(server.error_so_far().find("no fusion"), std::string::npos) << server.error_so_far();
    return read("/proc/" + std::to_string(server.id()) + "/maps");
  };
  const std::string warm = maps_of(path("serve_cache"));
  EXPECT_EQ(warm.find("libLLVM"), std::string::npos);
  EXPECT_EQ(warm.find("libmuster_codegen"), std::string::npos);
  EXPECT_THAT(warm, HasSubstr(".muster")) << "the program's code, from the cache";
  EXPECT_THAT(maps_of(path("cold_cache")), HasSubstr("libLLVM")) << "a cold one does";
}

TEST_F(CompilerVerbs, WithoutTheCodeGeneratorItStillAnswers) {
  Start start;
  start.arguments = {"predict", "--model", path("out"), "--no_compile_cache", "--logits", "awful film"};
  const Finished usual = run(start);
  start.environment["MUSTER_CODEGEN"] = "/nowhere/libmuster_codegen.so";
  const Finished without = run(start);
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("no fusion, so programs run slower: "));
  EXPECT_EQ(without.out.substr(0, 4), usual.out.substr(0, 4));
}

TEST_F(CompilerVerbs, CompileAheadForAnyMachine) {
  const std::string cache = path("ahead");
  for (const char* isa : {"x86-64-v3", "avx512", "amx"}) {
    const Finished done = run({"compile", "--model", path("out"), "--train", "--isa", isa, "--compile_cache", cache, "--json"});
    ASSERT_EQ(done.code, 0) << done.err;
    const auto json = nlohmann::json::parse(done.out);
    ASSERT_EQ(json["programs"].size(), 2u);
    for (const auto& program : json["programs"]) EXPECT_FALSE(program["from_cache"].get<bool>());
  }
  EXPECT_EQ(names(cache).size(), 6u);
  const Finished words = run({"compile", "--config_name", "tiny", "--task", "masked_lm", "--train", "--compile_cache", cache, "--json"});
  ASSERT_EQ(words.code, 0) << words.err;
  std::string programs;
  const auto compiled = nlohmann::json::parse(words.out);
  for (const auto& program : compiled["programs"]) programs += program["program"].get<std::string>() + " ";
  EXPECT_EQ(programs, "infer evaluate train ");
  const Finished again = run({"compile", "--model", path("out"), "--isa", "amx", "--compile_cache", cache});
  EXPECT_THAT(again.out, HasSubstr("was there"));
  EXPECT_EQ(run({"compile", "--model", path("out"), "--no_compile_cache"}).code, 2);
  EXPECT_EQ(run({"compile", "--compile_cache", cache}).code, 2) << "neither model nor config";
  EXPECT_EQ(run({"compile", "--model", path("out"), "--isa", "sparc"}).code, 2);
}

TEST_F(CompilerVerbs, ExplainTellsWhereTheTimeGoes) {
  const Finished table = run(
      {"explain", "--model", path("out"), "--train", "--tokens", "60", "--sequences", "4", "--runs", "2", "--trace", path("trace.json")});
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* text : {"program train: 60 tokens in 4 sequences", "measured limits: ", "layer_norm", "attention_grad", "all steps"})
    EXPECT_THAT(table.out, HasSubstr(text));
  const auto trace = nlohmann::json::parse(read(path("trace.json")));
  EXPECT_GT(trace["traceEvents"].size(), 20u);
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
  const Finished json = run({"explain", "--config_name", "tiny", "--tokens", "60", "--sequences", "4", "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_GT(parsed["peak_gflops"].get<double>(), 1);
  EXPECT_FALSE(parsed["steps"].empty());
  const Finished words = run({"explain", "--config_name", "tiny", "--task", "masked_lm", "--train", "--tokens", "60", "--sequences", "4",
                              "--predictions", "7", "--json"});
  ASSERT_EQ(words.code, 0) << words.err;
  bool decoder = false;
  const auto explained = nlohmann::json::parse(words.out);
  for (const auto& step : explained["steps"])
    decoder |= step["type"].get<std::string>().find("[P, ") != std::string::npos;
  EXPECT_TRUE(decoder) << words.out;
  EXPECT_EQ(run({"explain", "--config_name", "tiny", "--predictions", "7"}).code, 2);
  EXPECT_EQ(run({"explain", "--config_name", "tiny", "--task", "masked_lm", "--predictions", "9000"}).code, 2);
  EXPECT_EQ(run({"explain", "--config_name", "roberta-base", "--task", "masked_lm", "--next_sentence", "true"}).code, 2);
  EXPECT_EQ(run({"explain", "--model", path("out"), "--tokens", "3", "--sequences", "4"}).code, 2);
  EXPECT_EQ(run({"explain", "--model", path("out"), "--disable_pass", "nonsense"}).code, 2);
}

TEST_F(CompilerVerbs, TrainWritesATraceOfItsSteps) {
  const auto train = [&](const std::string& trace, const std::string& steps) {
    return run({"train", "--model", path("model"), "--data", path("data"), "--output_dir", path("traced"), "--overwrite_output_dir",
                "--max_steps", "4", "--save_strategy", "no", "--trace", trace, "--trace_steps", steps});
  };
  for (const char* steps : {"2", "100"}) {  // fewer than there are, and more
    const Finished done = train(path("steps.json"), steps);
    ASSERT_EQ(done.code, 0) << done.err;
    std::map<std::string, int> spans;
    const auto written = nlohmann::json::parse(read(path("steps.json")));
    for (const auto& event : written["traceEvents"])
      if (event["ph"] == "X") ++spans[event["name"].get<std::string>()];
    const int want = *steps == '2' ? 2 : 3;
    EXPECT_EQ(spans["compute"], want);
    EXPECT_EQ(spans["update"], want);
    EXPECT_EQ(spans["step 2"], 1);
    EXPECT_EQ(spans.count("step 1"), 0u) << "the first step grows buffers";
    EXPECT_GT(spans["attention_grad"], 0);
    EXPECT_GT(spans["adamw"], 0);
  }
  const Finished refused = train(path("no/such/steps.json"), "2");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("no/such/steps.json"));
}

TEST_F(CompilerVerbs, PassesAreDumpedAndLeftOut) {
  const Finished dumped = run({"predict", "--model", path("out"), "--dump_passes", path("dump"), "fine"});
  ASSERT_EQ(dumped.code, 0) << dumped.err;
  EXPECT_THAT(read(path("dump/infer-03-fuse.txt")), HasSubstr("region("));
  const Finished without = run({"predict", "--model", path("out"), "--disable_pass", "fuse", "--dump_passes", path("dump2"), "fine"});
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(names(path("dump2")).size(), 2u);
}

}  // namespace
}  // namespace muster::cli
