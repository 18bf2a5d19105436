// 32 clients at once against a served model: every answer must be the bytes that the same request gets alone, and memory must stay flat.
// MUSTER_LOAD_SECONDS (default 5) and MUSTER_LOAD_MODEL (a model folder; default a tiny one) make it the long run.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include "cli/process.h"
#include "core/error.h"
#include "core/philox.h"
#include "net/http_client.h"

namespace muster::cli {
namespace {

/// Resident memory of a process in KiB.
long resident_kib(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmRSS:")) return std::strtol(line.c_str() + 6, nullptr, 10);
  return -1;
}

std::vector<std::string> request_bodies() {
  const std::vector<std::string> words{"the",  "day",  "was", "good",   "awful", "sad",   "happy",
                                       "film", "very", "so",  "really", "angry", "today", "lovely"};
  std::vector<std::string> bodies;
  Philox random(1);
  const auto text = [&] {
    std::string t = "\"";
    for (uint32_t n = 1 + random.below(60); n > 0; --n) t += words[random.below(static_cast<uint32_t>(words.size()))] + " ";
    return t + "\"";
  };
  for (int i = 0; i < 40; ++i) {
    std::string inputs = text();
    if (i % 3 == 0) {
      for (uint32_t n = random.below(6); n > 0; --n) inputs += "," + text();
      inputs = "[" + inputs + "]";
    }
    bodies.push_back("{\"inputs\":" + inputs + (i % 2 ? R"(,"parameters":{"top_k":null}})" : "}"));
  }
  return bodies;
}

net::HttpReply post(net::HttpClient& client, const std::string& url, const std::string& body) {
  net::HttpCall call;
  call.url = url + "/invocations", call.method = "POST", call.body = body;
  call.headers.add("content-type", "application/json");
  return client.request(call);
}

TEST(ServeLoad, EveryAnswerIsTheOneItGetsAloneAndMemoryIsFlat) {
  const char* wanted_seconds = std::getenv("MUSTER_LOAD_SECONDS");
  const char* wanted_model = std::getenv("MUSTER_LOAD_MODEL");
  const double seconds = wanted_seconds ? std::strtod(wanted_seconds, nullptr) : 5;
  Folder folder;
  std::string model = wanted_model ? wanted_model : folder / "out";
  if (!wanted_model) {
    make_data(folder / "data", 64);
    make_model(folder / "model");
    ASSERT_EQ(run({"train", "--model", folder / "model", "--data", folder / "data", "--output_dir", model, "--max_steps", "20",
                   "--learning_rate", "5e-3", "--save_strategy", "no"})
                  .code,
              0);
  }
  Start start;
  start.arguments = {"serve", "--model", model, "--port", "0"};
  Process server(start);
  ASSERT_TRUE(server.wait_for(" on http://127.0.0.1:")) << server.error_so_far();
  const std::string said = server.error_so_far();
  const std::string url = said.substr(said.find("http://"), said.find('\n', said.find("http://")) - said.find("http://"));

  const std::vector<std::string> bodies = request_bodies();
  std::vector<std::string> alone;
  net::HttpClient first;
  for (const std::string& body : bodies) {
    const net::HttpReply reply = post(first, url, body);
    ASSERT_EQ(reply.status, 200) << reply.body;
    alone.push_back(reply.body);
  }

  std::atomic<int64_t> answers{0}, wrong{0}, refused{0};
  long warm = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  std::vector<std::thread> clients;
  for (uint64_t c = 0; c < 32; ++c) {
    clients.emplace_back([&, c] {
      net::HttpClient client;
      Philox random(2, c);
      while (elapsed() < seconds) {
        const size_t i = random.below(static_cast<uint32_t>(bodies.size()));
        try {
          const net::HttpReply reply = post(client, url, bodies[i]);
          ++answers;
          if (reply.status != 200)
            ++refused;
          else if (reply.body != alone[i])
            ++wrong;
        } catch (const Error&) {
          ++refused;
        }
      }
    });
  }
  while (elapsed() < seconds * 0.4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  warm = resident_kib(server.id());
  for (std::thread& client : clients) client.join();
  const long end = resident_kib(server.id());
  std::printf("%lld answers in %.1f s, %.0f a second, resident %ld KiB at 40 %% of the time, %ld KiB at the end\n",
              static_cast<long long>(answers), elapsed(), static_cast<double>(answers) / elapsed(), warm, end);
  EXPECT_GT(answers, 100);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(refused, 0);
  EXPECT_LT(end, warm + std::max(4096L, warm / 50)) << "memory grows";
  server.signal(SIGTERM);
  EXPECT_EQ(server.finish().code, 0);
}

}  // namespace
}  // namespace muster::cli
