// The only file that sees Boost.Asio and Beast. A connection is one coroutine on its own strand: read a request, hand it over, wait for
// the answer, write it. Beast parses requests; responses are a few lines of text and are put together here.
#include "net/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <condition_variable>
#include <ctime>
#include <future>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "core/error.h"
#include "core/log.h"

namespace muster::net {

class Responder::Slot {
 public:
  explicit Slot(std::function<void(HttpResponse)> deliver) : deliver_(std::move(deliver)) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() { send(error_response(500, "internal error: the request was dropped without an answer")); }
  void send(HttpResponse response) {
    if (!answered_.exchange(true)) deliver_(std::move(response));
  }

 private:
  std::atomic<bool> answered_{false};
  std::function<void(HttpResponse)> deliver_;
};

void Responder::send(HttpResponse response) const { slot_->send(std::move(response)); }

namespace {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Parser = bhttp::request_parser<bhttp::string_body>;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadChunk = 8192;
constexpr size_t kReadAhead = 65536;        // bytes of later requests taken in while one is handled
constexpr int kMaxRefusing = 64;            // connections over the limit that are being told so; more are just closed
constexpr std::chrono::seconds kLinger{2};  // for a refused client to read why before its connection is reset

std::string http_date() {
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  gmtime_r(&now, &t);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[static_cast<size_t>(t.tm_wday)], t.tm_mday,
                     kMonths[static_cast<size_t>(t.tm_mon)], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/// A header value on one line, whatever was put into it.
std::string one_line(std::string value) {
  std::replace_if(value.begin(), value.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }, ' ');
  return value;
}

std::string response_head(const HttpResponse& response, unsigned version, bool keep_alive) {
  std::string head =
      fmt::format("HTTP/1.{} {} {}\r\nDate: {}\r\n", version == 10 ? 0 : 1, response.status, reason_of(response.status), http_date());
  if (!response.body.empty()) head += fmt::format("Content-Type: {}\r\n", one_line(response.content_type));
  if (response.status != 204) head += fmt::format("Content-Length: {}\r\n", response.body.size());
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", one_line(name), one_line(value));
  if (!keep_alive)
    head += "Connection: close\r\n";
  else if (version == 10)
    head += "Connection: keep-alive\r\n";
  return head += "\r\n";
}

class Session;

/// What the connections of one server share. Sessions keep it alive; it knows them only to drain or cut them.
struct Shared {
  Shared(HttpServerOptions o, HttpHandler h) : options(std::move(o)), handler(std::move(h)) {}

  const HttpServerOptions options;
  const HttpHandler handler;
  asio::io_context io;
  std::atomic<size_t> body_bytes{0};  // of requests being read or handled
  tcp::acceptor acceptor{asio::make_strand(io)};
  asio::steady_timer accept_pause{acceptor.get_executor()};
  std::mutex mutex;
  std::condition_variable gone;
  std::unordered_map<Session*, std::weak_ptr<Session>> sessions;  // guarded by mutex, like the two below
  int serving = 0, refusing = 0;
  bool draining = false;
};

/// What one request takes of the memory for bodies; gives it back.
class BodyShare {
 public:
  explicit BodyShare(Shared& shared) : shared_(shared) {}
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  ~BodyShare() { shared_.body_bytes -= held_; }
  /// False when that is more than there is.
  bool grow_to(size_t bytes) {
    const size_t more = bytes - held_;
    if ((shared_.body_bytes += more) > shared_.options.max_total_body_bytes) {
      shared_.body_bytes -= more;  // at once: a refused request must not push others over the bound
      return false;
    }
    held_ = bytes;
    return true;
  }

 private:
  Shared& shared_;
  size_t held_ = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Shared> shared, tcp::socket socket, bool refuse)
      : shared_(std::move(shared)),
        socket_(std::move(socket)),
        deadline_(socket_.get_executor()),
        wake_(socket_.get_executor()),
        refuse_(refuse) {}

  [[nodiscard]] bool refused() const { return refuse_; }
  auto executor() { return socket_.get_executor(); }

  asio::awaitable<void> run() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
    const auto peer = socket_.remote_endpoint(ignored);
    remote_ = fmt::format("{}:{}", peer.address().to_string(ignored), peer.port());
    wake_.expires_at(asio::steady_timer::time_point::max());
    if (refuse_) {
      const std::string text = fmt::format("the server has {} connections, its limit: try again later", shared_->options.max_connections);
      HttpResponse response = error_response(503, text);
      response.headers.add("Retry-After", "1");
      co_await turn_away(std::move(response));
    } else {
      for (bool more = true; more;) more = co_await serve_one();
    }
    deadline_.cancel();
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  /// On the strand: no further request; an idle connection ends now.
  void begin_drain() {
    draining_ = true;
    error_code ignored;
    if ((idle_ && socket_.available(ignored) == 0) || lingering_) socket_.cancel(ignored);
  }
  /// On the strand: ends the connection whatever it is doing.
  void cut() {
    cut_ = true;
    if (cancelled_) cancelled_->store(true);
    error_code ignored;
    socket_.close(ignored);
    deadline_.cancel();
    wake_.cancel();
  }

 private:
  /// True when the connection stays for another request.
  asio::awaitable<bool> serve_one() {
    timed_out_ = false;
    if (buffer_.size() == 0 && !co_await first_bytes()) co_return false;

    Parser parser;
    parser.header_limit(static_cast<uint32_t>(shared_->options.max_header_bytes));
    parser.body_limit(shared_->options.max_body_bytes);
    arm(shared_->options.read_timeout);
    const auto [header_error, header_bytes] = co_await bhttp::async_read_header(socket_, buffer_, parser, kTuple);
    if (header_error) co_return co_await refuse(header_error, parser);
    if (std::optional<HttpResponse> objection = object_to(parser)) co_return co_await turn_away(std::move(*objection));

    BodyShare share(*shared_);
    if (!parser.is_done()) {
      if (buffer_.size() == 0 && same_word(std::string_view(parser.get()[bhttp::field::expect]), "100-continue") &&
          parser.get().version() == 11) {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        const auto [error, bytes] = co_await asio::async_write(socket_, asio::buffer(kContinue), kTuple);
        if (error) co_return false;
      }
      while (!parser.is_done()) {
        const auto [error, bytes] = co_await bhttp::async_read_some(socket_, buffer_, parser, kTuple);
        if (error) co_return co_await refuse(error, parser);
        if (share.grow_to(parser.get().body().size())) continue;
        HttpResponse response = error_response(503, "the bodies of all requests together take too much memory: try again later");
        response.headers.add("Retry-After", "1");
        co_return co_await turn_away(std::move(response));
      }
    }

    const bool head_only = parser.get().method() == bhttp::verb::head, wants_more = parser.keep_alive();
    const unsigned version = parser.get().version();
    HttpResponse response = co_await answer_to(parser);
    if (cut_) co_return false;
    const bool keep = wants_more && !draining_;
    co_return co_await write(response, version, keep, head_only) && keep;
  }

  /// Waits for a request to begin.
  asio::awaitable<bool> first_bytes() {
    error_code ignored;
    if (cut_ || (draining_ && socket_.available(ignored) == 0)) co_return false;
    idle_ = true;
    arm(shared_->options.idle_timeout);
    const auto [error, bytes] = co_await socket_.async_read_some(buffer_.prepare(kReadChunk), kTuple);
    idle_ = false;
    buffer_.commit(bytes);
    co_return !error;
  }

  /// What is wrong with a request whose header has been read.
  std::optional<HttpResponse> object_to(const Parser& parser) const {
    const auto& message = parser.get();
    if (message.version() != 10 && message.version() != 11) return error_response(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    if (message.target().size() > shared_->options.max_target_bytes) return target_too_long();
    if (message.version() == 11 && message.count(bhttp::field::host) != 1)
      return error_response(400, "bad request: an HTTP/1.1 request has exactly one Host header");
    if (const auto expect = message[bhttp::field::expect]; !expect.empty() && !same_word(std::string_view(expect), "100-continue"))
      return error_response(417, "the only expectation known here is 100-continue");
    return std::nullopt;
  }
  [[nodiscard]] HttpResponse target_too_long() const {
    return error_response(414, fmt::format("the request target is longer than {} bytes", shared_->options.max_target_bytes));
  }

  /// Ends the connection after a failed read; tells the client why when it is there to hear it.
  asio::awaitable<bool> refuse(error_code error, const Parser& parser) {
    const HttpServerOptions& options = shared_->options;
    if (timed_out_) {
      const std::string text = fmt::format("the request did not arrive within {} ms", options.read_timeout.count());
      co_return co_await turn_away(error_response(408, text));
    }
    static const auto& parse_errors = make_error_code(bhttp::error::bad_target).category();
    if (error.category() != parse_errors || error == bhttp::error::end_of_stream || error == bhttp::error::partial_message) co_return false;
    if (error == bhttp::error::body_limit)
      co_return co_await turn_away(error_response(413, fmt::format("the body is larger than {} bytes", options.max_body_bytes)));
    if (error == bhttp::error::header_limit || error == bhttp::error::buffer_overflow) {
      if (parser.get().target().empty())  // not even the request line has ended
        co_return co_await turn_away(target_too_long());
      co_return co_await turn_away(
          error_response(431, fmt::format("the request header is larger than {} bytes", options.max_header_bytes)));
    }
    if (error == bhttp::error::bad_version) co_return co_await turn_away(error_response(505, "only HTTP/1.0 and HTTP/1.1 are spoken here"));
    co_return co_await turn_away(error_response(400, fmt::format("bad request: {}", error.message())));
  }

  /// Answers and closes. What the client still sends is read for a moment and dropped: closing a socket with unread bytes would reset the
  /// connection, and the answer with it.
  asio::awaitable<bool> turn_away(HttpResponse response) {
    if (!co_await write(response, 11, false, false)) co_return false;
    error_code error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    lingering_ = true;
    arm(kLinger);
    std::array<char, kReadChunk> sink;  // NOLINT: no need to clear it
    while (!error && !draining_ && !cut_) std::tie(error, std::ignore) = co_await socket_.async_read_some(asio::buffer(sink), kTuple);
    co_return false;
  }

  /// Hands the request to the handler and waits for its answer.
  asio::awaitable<HttpResponse> answer_to(Parser& parser) {
    auto& message = parser.get();
    HttpRequest request;
    request.method = message.method_string();
    request.target = message.target();
    split_target(request.target, request.path, request.query);
    for (const auto& field : message) request.headers.add(std::string(field.name_string()), std::string(field.value()));
    request.body = std::move(message.body());
    request.remote = remote_;
    cancelled_ = std::make_shared<std::atomic<bool>>(false);
    request.cancelled = cancelled_;

    answer_.reset();
    const uint64_t turn = ++turn_;
    waiting_ = true;
    arm(shared_->options.answer_timeout);
    watch_client(turn);
    Responder responder(std::make_shared<Responder::Slot>([weak = weak_from_this(), turn](HttpResponse response) {
      // The posted function holds the session weakly: one left over in a stopped server must not keep that server alive.
      if (const auto session = weak.lock())
        asio::post(session->executor(), [weak, turn, r = std::move(response)]() mutable {
          if (const auto s = weak.lock()) s->take_answer(turn, std::move(r));
        });
    }));
    try {
      shared_->handler(std::move(request), responder);
    } catch (const std::exception& e) {
      responder.send(error_response(500, fmt::format("internal error: {}", e.what())));
    }
    responder = Responder(nullptr);
    while (!answer_ && !cut_) co_await wake_.async_wait(kTuple);
    waiting_ = false;
    error_code ignored;
    socket_.cancel(ignored);  // the watch
    co_return answer_ ? std::move(*answer_) : HttpResponse{};
  }

  void take_answer(uint64_t turn, HttpResponse response) {
    if (turn != turn_ || !waiting_ || answer_) return;  // came after its 504
    answer_ = std::move(response);
    wake_.cancel();
  }

  /// While a request is handled: notices a client that closes, and takes in the first bytes of later requests so as to see behind them.
  void watch_client(uint64_t turn) {
    if (buffer_.size() >= kReadAhead) return;
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this(), turn](error_code error) {
      if (error || turn != self->turn_ || !self->waiting_) return;
      error_code read_error;
      const size_t bytes = self->socket_.read_some(self->buffer_.prepare(kReadChunk), read_error);
      self->buffer_.commit(bytes);
      if (!read_error || read_error == asio::error::would_block)
        self->watch_client(turn);
      else
        self->cancelled_->store(true);
    });
  }

  asio::awaitable<bool> write(const HttpResponse& response, unsigned version, bool keep_alive, bool head_only) {
    timed_out_ = false;
    arm(shared_->options.write_timeout);
    const std::string head = response_head(response, version, keep_alive);
    const std::array<asio::const_buffer, 2> parts{asio::buffer(head), head_only ? asio::const_buffer() : asio::buffer(response.body)};
    const auto [error, bytes] = co_await asio::async_write(socket_, parts, kTuple);
    co_return !error;
  }

  /// Starts the one clock of the connection anew.
  void arm(std::chrono::milliseconds time) {
    deadline_.expires_after(time);
    deadline_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (error || !self || self->deadline_.expiry() > asio::steady_timer::clock_type::now()) return;  // armed anew meanwhile
      self->on_deadline();
    });
  }
  void on_deadline() {
    if (waiting_) {
      cancelled_->store(true);
      const std::string text = fmt::format("no answer within {} ms", shared_->options.answer_timeout.count());
      take_answer(turn_, error_response(504, text));
      return;
    }
    timed_out_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  }

  const std::shared_ptr<Shared> shared_;
  tcp::socket socket_;
  asio::steady_timer deadline_, wake_;  // wake_ never expires: cancelling it wakes the coroutine
  const bool refuse_;
  beast::flat_buffer buffer_{kReadAhead * 4};
  std::string remote_;
  std::shared_ptr<std::atomic<bool>> cancelled_;
  std::optional<HttpResponse> answer_;
  uint64_t turn_ = 0;  // of the request being handled
  bool idle_ = false, lingering_ = false, waiting_ = false, timed_out_ = false, draining_ = false, cut_ = false;
};

void start_session(const std::shared_ptr<Shared>& shared, tcp::socket socket) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(shared->mutex);
    const bool refuse = shared->serving >= shared->options.max_connections;
    if (refuse && shared->refusing >= kMaxRefusing) return;  // closes the socket
    session = std::make_shared<Session>(shared, std::move(socket), refuse);
    ++(refuse ? shared->refusing : shared->serving);
    shared->sessions.emplace(session.get(), session);
  }
  asio::co_spawn(
      session->executor(), [session]() -> asio::awaitable<void> { co_await session->run(); },
      [shared, key = session.get(), refused = session->refused()](const std::exception_ptr& failure) {
        try {
          if (failure) std::rethrow_exception(failure);
        } catch (const std::exception& e) {
          log_warning("a connection ended by an internal error: {}", e.what());
        }
        const std::lock_guard lock(shared->mutex);
        shared->sessions.erase(key);
        --(refused ? shared->refusing : shared->serving);
        shared->gone.notify_all();
      });
}

asio::awaitable<void> accept_loop(std::shared_ptr<Shared> shared) {
  while (shared->acceptor.is_open()) {
    tcp::socket socket(asio::make_strand(shared->io));
    const auto [error] = co_await shared->acceptor.async_accept(socket, kTuple);
    if (!error) {
      start_session(shared, std::move(socket));
    } else if (shared->acceptor.is_open() && error != asio::error::connection_aborted) {
      log_warning("cannot accept a connection: {}", error.message());  // most likely out of file descriptors: wait for some to be freed
      shared->accept_pause.expires_after(std::chrono::milliseconds(100));
      co_await shared->accept_pause.async_wait(kTuple);
    }
  }
}

void listen(Shared& shared) {
  const HttpServerOptions& options = shared.options;
  error_code error;
  tcp::resolver resolver(shared.io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    throw Error(ErrorKind::io, "cannot listen on {}: {}: give an address of this machine by --host", options.host, error.message());
  const tcp::endpoint where = found.begin()->endpoint();
  shared.acceptor.open(where.protocol(), error);
  if (!error) shared.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) shared.acceptor.bind(where, error);
  if (!error) shared.acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use)
    throw Error(ErrorKind::io, "port {} is taken on {} by another program: choose another by --port", options.port, options.host);
  if (error == asio::error::access_denied)
    throw Error(ErrorKind::io, "port {} may not be used by this user: choose one above 1023 by --port", options.port);
  if (error)
    throw Error(ErrorKind::io, "cannot listen on {}:{}: {}: give an address of this machine by --host", options.host, options.port,
                error.message());
}
}  // namespace

class HttpServer::Core {
 public:
  Core(HttpServerOptions options, HttpHandler handler) : shared_(std::make_shared<Shared>(std::move(options), std::move(handler))) {
    listen(*shared_);
    port_ = shared_->acceptor.local_endpoint().port();
    asio::co_spawn(shared_->acceptor.get_executor(), accept_loop(shared_), asio::detached);
    const int threads = std::max(1, shared_->options.io_threads);
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([io = &shared_->io] { io->run(); });
    } catch (...) {
      drain(std::chrono::milliseconds(0));
      throw;
    }
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() { drain(std::chrono::milliseconds(0)); }

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] int connections() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->serving;
  }

  bool drain(std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    std::unique_lock lock(shared_->mutex);
    if (std::exchange(shared_->draining, true)) return true;
    lock.unlock();

    std::promise<void> closed;
    asio::post(shared_->acceptor.get_executor(), [this, &closed] {
      close_acceptor();
      closed.set_value();
    });
    if (!threads_.empty()) closed.get_future().wait();

    lock.lock();
    each_session([](Session& session) { session.begin_drain(); });
    const bool all_done = shared_->gone.wait_until(lock, until, [&] { return shared_->sessions.empty(); });
    if (!all_done) {
      each_session([](Session& session) { session.cut(); });
      shared_->gone.wait(lock, [&] { return shared_->sessions.empty(); });
    }
    lock.unlock();
    for (std::thread& thread : threads_) thread.join();  // run() returns when nothing is left to do
    threads_.clear();
    return all_done;
  }

 private:
  /// Takes what the kernel has already connected, so that nobody who got through is reset; then closes.
  void close_acceptor() {
    error_code error;
    shared_->acceptor.non_blocking(true, error);
    while (!error) {
      tcp::socket socket(asio::make_strand(shared_->io));
      shared_->acceptor.accept(socket, error);
      if (!error) start_session(shared_, std::move(socket));
    }
    shared_->acceptor.close(error);
    shared_->accept_pause.cancel();
  }
  /// With the mutex held: `act` runs later on each session's strand.
  void each_session(void (*act)(Session&)) {
    for (const auto& [key, weak] : shared_->sessions)
      if (const auto session = weak.lock())
        asio::post(session->executor(), [weak = weak, act] {
          if (const auto s = weak.lock()) act(*s);
        });
  }

  std::shared_ptr<Shared> shared_;
  uint16_t port_ = 0;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(HttpServerOptions options, HttpHandler handler)
    : core_(std::make_shared<Core>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return core_->port(); }
int HttpServer::connections() const { return core_->connections(); }
bool HttpServer::drain(std::chrono::milliseconds deadline) { return core_->drain(deadline); }

}  // namespace muster::net
