// The only file that sees libcurl.
#include "net/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <mutex>

#include "core/error.h"

namespace muster::net {
namespace {
void init_curl() {
  static std::once_flag once;  // libcurl's own process-wide state
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

/// Where libcurl puts a reply.
struct Receiver {
  HttpReply reply;
  size_t max_bytes = 0;
  bool too_large = false;
};

size_t take_body(char* data, size_t size, size_t count, void* user) {
  auto& to = *static_cast<Receiver*>(user);
  const size_t bytes = size * count;
  if (to.reply.body.size() + bytes > to.max_bytes) {
    to.too_large = true;
    return 0;  // makes libcurl stop
  }
  to.reply.body.append(data, bytes);
  return bytes;
}

size_t take_header(char* data, size_t size, size_t count, void* user) {
  auto& to = *static_cast<Receiver*>(user);
  std::string_view line(data, size * count);
  if (line.starts_with("HTTP/"))
    to.reply.headers = {};  // an interim reply (100) came before
  else if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
    std::string_view value = line.substr(colon + 1);
    const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
    while (!value.empty() && space(static_cast<unsigned char>(value.front()))) value.remove_prefix(1);
    while (!value.empty() && space(static_cast<unsigned char>(value.back()))) value.remove_suffix(1);
    to.reply.headers.add(std::string(line.substr(0, colon)), std::string(value));
  }
  return size * count;
}

std::string host_of(const std::string& url) {
  CURLU* parts = curl_url();
  char* host = nullptr;
  std::string out;
  if (curl_url_set(parts, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK && curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK)
    out = host;
  curl_free(host);
  curl_url_cleanup(parts);
  return out;
}

bool is_this_machine(const std::string& host) { return host == "localhost" || host == "[::1]" || host.starts_with("127."); }

/// A list of header lines that frees itself.
class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list_); }
  void add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
  [[nodiscard]] curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};
}  // namespace

struct HttpClient::State {
  CURL* curl = nullptr;
};

HttpClient::HttpClient() : state_(std::make_unique<State>()) {
  init_curl();
  state_->curl = curl_easy_init();
  if (!state_->curl) throw Error(ErrorKind::internal, "libcurl did not start");
}
HttpClient::~HttpClient() { curl_easy_cleanup(state_->curl); }

HttpReply HttpClient::request(const HttpCall& call) {
  CURL* const curl = state_->curl;
  const std::string host = host_of(call.url);
  if (host.empty() || !(call.url.starts_with("http://") || call.url.starts_with("https://")))
    throw Error(ErrorKind::usage, "'{}' is not an http:// or https:// URL", call.url);

  Receiver receiver;
  receiver.max_bytes = call.max_reply_bytes;
  HeaderList headers;
  headers.add("Expect:");  // a body is sent at once, without asking
  if (!call.body.empty() && !call.headers.get("Content-Type")) headers.add("Content-Type:");
  for (const auto& [name, value] : call.headers) {
    if ((name + value).find_first_of("\r\n") != std::string::npos)
      throw Error(ErrorKind::invalid_argument, "{}: header '{}' has a line break in it", call.url, name);
    headers.add(value.empty() ? name + ";" : name + ": " + value);
  }

  curl_easy_reset(curl);  // options only: the connection stays
  std::string why(CURL_ERROR_SIZE, '\0');
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why.data());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_URL, call.url.c_str());
  if (is_this_machine(host)) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(call.connect_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &receiver);
  if (call.method == "HEAD")
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  else if (call.method != "GET" || !call.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body.data());
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method.c_str());
  }

  const CURLcode code = curl_easy_perform(curl);
  const std::string reason = why[0] != '\0' ? why.c_str() : curl_easy_strerror(code);
  if (receiver.too_large) throw Error(ErrorKind::too_large, "{}: the reply is larger than {} bytes", call.url, call.max_reply_bytes);
  if (code == CURLE_OPERATION_TIMEDOUT) throw Error(ErrorKind::timeout, "{}: no reply in time: {}", call.url, reason);
  if (code == CURLE_COULDNT_CONNECT) throw Error(ErrorKind::io, "{}: {}: is the server running there?", call.url, reason);
  if (code != CURLE_OK) throw Error(ErrorKind::io, "{}: {}", call.url, reason);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  receiver.reply.status = static_cast<int>(status);
  return std::move(receiver.reply);
}

HttpReply http_request(const HttpCall& call) { return HttpClient().request(call); }

}  // namespace muster::net
