// muster top: a run as it goes on.
#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "cli/support.h"
#include "cli/verbs.h"
#include "train/run_view.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string run;
  double interval = 1;
  bool once = false, json = false;
};

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value && *value) {
      const std::string_view text = value;
      return text.find("UTF-8") != std::string_view::npos || text.find("utf8") != std::string_view::npos;
    }
  return false;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// The terminal's second screen for as long as the object lives, without a cursor.
class Screen {
 public:
  Screen() { std::cout << "\033[?1049h\033[?25l" << std::flush; }
  ~Screen() { std::cout << "\033[?25h\033[?1049l" << std::flush; }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  static void show(const std::string& text) {
    std::string out = "\033[H";
    for (const char c : text) out += c == '\n' ? std::string("\033[K\n") : std::string(1, c);
    std::cout << out << "\033[J" << std::flush;
  }
};

int run(const Flags& flags) {
  const std::atomic<bool>& stop = install_stop_flag();
  const auto write = [](const std::string& text) {
    std::cout << text << std::flush;
    if (!std::cout) throw Error(ErrorKind::io, "standard output: cannot write");
  };
  winsize size{};
  const bool terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  if (flags.json || flags.once || !terminal) {
    const train::RunView view = train::read_run(flags.run, now());
    write(flags.json ? train::to_json(view) + "\n" : train::render(view, terminal ? size.ws_col : 100, 40, utf8_locale()));
    return 0;
  }
  train::RunView view = train::read_run(flags.run, now());  // an error is shown before the screen changes
  {
    const Screen screen;
    while (!stop) {
      if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80, size.ws_row = 24;
      Screen::show(train::render(view, size.ws_col, size.ws_row - 1, utf8_locale()) + "Ctrl-C: leave (the run goes on)");
      const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(flags.interval);
      while (!stop && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (!stop) view = train::read_run(flags.run, now());
    }
  }
  return stop_exit_code();
}

}  // namespace

std::function<int()> declare_top(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("run", flags->run, "output folder of muster train")->required();
  app.add_option("--interval", flags->interval, "seconds between two looks")->check(CLI::Range(0.1, 3600.0))->capture_default_str();
  app.add_flag("--once", flags->once, "print one view and leave; so without a terminal");
  app.add_flag("--json", flags->json, "print one view as a JSON object and leave");
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
