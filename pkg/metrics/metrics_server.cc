// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics_server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <CivetServer.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include "pkg/base/parse.h"
#include "pkg/sys/thread.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

// One scrape at a time is what happens; other threads answer while some are stuck with slow
// clients. Each client holds a thread until its request is here, for so long at most: without a
// limit of ours that is half a minute.
constexpr size_t kThreads = 4;
// Browsers open connections that they may never use, and the page's data may be waited for
// (LoopQuestions::Limits::waiting): the scrape goes on beside them.
constexpr size_t kThreadsWithPage = 12;
constexpr std::string_view kRequestTimeoutMs = "3000";
// For an answer to a client that reads it slowly, which holds a thread meanwhile. The library's own
// limit is for each part that the client has read.
constexpr std::chrono::seconds kSendDeadline{5};
constexpr size_t kPart = size_t{16} << 10;
constexpr uint64_t kHighestPort = 65535;
// What keeps it longer is a client that is connected and asks for nothing, as those of Prometheus
// are between two scrapes.
constexpr std::chrono::milliseconds kEndDeadline{250};
constexpr std::chrono::milliseconds kKnockPause{5};

// The form that the HTTP server reads. It would also take a list and letters for TLS and redirects
// behind the port; we do not.
StatusOr<std::string> ListenSpec(std::string_view address) {
  const size_t colon = address.rfind(':');
  const std::string_view host = address.substr(0, colon);
  const auto port =
      colon == std::string_view::npos ? std::nullopt : ParseUint(address.substr(colon + 1));
  if (!port || *port > kHighestPort || host.find_first_of(", +") != std::string_view::npos) {
    return InvalidArgument("metrics address \"{}\" is not HOST:PORT", Printable(address));
  }
  return host.empty() ? std::to_string(*port) : fmt::format("{}:{}", host, *port);
}

// Where the server is reached: its own host where that is a number, else this machine.
sockaddr_storage AddressOf(std::string host, int port) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  sockaddr_storage address{};
  if (::getaddrinfo(host.c_str(), service.c_str(), &hints, &found) != 0 &&
      ::getaddrinfo("127.0.0.1", service.c_str(), &hints, &found) != 0) {
    return address;
  }
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
}

// Connects and leaves.
void Knock(const sockaddr_storage& address) {
  const UniqueFd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  const socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  [[maybe_unused]] const int connected =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size);
}

// Gives a client up that does not read. The connection ends with the request.
void Send(mg_connection* client, std::string_view text) {
  const auto deadline = std::chrono::steady_clock::now() + kSendDeadline;
  while (!text.empty() && std::chrono::steady_clock::now() < deadline) {
    const std::string_view part = text.substr(0, kPart);
    const int sent = mg_write(client, part.data(), part.size());
    if (sent <= 0) return;
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

void Answer(mg_connection* client, std::string_view status, std::string_view type,
            const std::string& body) {
  const std::string head = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", status,
      type, body.size());
  Send(client, head + body);
}

std::string_view StatusLine(int code) {
  switch (code) {
    case 200:
      return "200 OK";
    case 308:
      return "308 Permanent Redirect";
    case 400:
      return "400 Bad Request";
    case 403:
      return "403 Forbidden";
    case 404:
      return "404 Not Found";
    case 405:
      return "405 Method Not Allowed";
    case 421:
      return "421 Misdirected Request";
    case 503:
      return "503 Service Unavailable";
    default:
      return "500 Internal Server Error";
  }
}

class MetricsHandler final : public CivetHandler {
 public:
  explicit MetricsHandler(std::vector<std::shared_ptr<prometheus::Collectable>> collectables)
      : collectables_(std::move(collectables)) {}

  bool handleGet(CivetServer*, mg_connection* client) override {
    std::string body;
    for (const auto& collectable : collectables_)
      body += prometheus::TextSerializer().Serialize(collectable->Collect());
    Answer(client, "200 OK", "text/plain; version=0.0.4; charset=utf-8", body);
    return true;
  }

 private:
  const std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;
};

// Of /healthz and /readyz.
class HealthHandler final : public CivetHandler {
 public:
  explicit HealthHandler(std::shared_ptr<const Health> health) : health_(std::move(health)) {}

  bool handleGet(CivetServer*, mg_connection* client) override {
    std::string why = health_->Sickness();
    const std::string_view path = mg_get_request_info(client)->local_uri;
    if (why.empty() && path == "/readyz") why = health_->WhyNotReady();
    Answer(client, why.empty() ? "200 OK" : "503 Service Unavailable", "text/plain; charset=utf-8",
           (why.empty() ? "ok" : why) + "\n");
    return true;
  }

 private:
  const std::shared_ptr<const Health> health_;
};

// Of the page: methods that it does not have are its own to refuse.
class PageHandler final : public CivetHandler {
 public:
  explicit PageHandler(std::shared_ptr<HttpHandler> page) : page_(std::move(page)) {}

  bool handleGet(CivetServer*, mg_connection* client) override { return Handle(client); }
  bool handleHead(CivetServer*, mg_connection* client) override { return Handle(client); }
  bool handlePost(CivetServer*, mg_connection* client) override { return Handle(client); }
  bool handlePut(CivetServer*, mg_connection* client) override { return Handle(client); }
  bool handleDelete(CivetServer*, mg_connection* client) override { return Handle(client); }
  bool handleOptions(CivetServer*, mg_connection* client) override { return Handle(client); }
  bool handlePatch(CivetServer*, mg_connection* client) override { return Handle(client); }

 private:
  static std::string TextOrNone(const char* text) { return text == nullptr ? "" : text; }

  bool Handle(mg_connection* client) {
    const mg_request_info* const info = mg_get_request_info(client);
    const HttpRequest request{.method = TextOrNone(info->request_method),
                              .path = TextOrNone(info->local_uri),
                              .query = TextOrNone(info->query_string),
                              .host = TextOrNone(mg_get_header(client, "Host")),
                              .fetch_site = TextOrNone(mg_get_header(client, "Sec-Fetch-Site"))};
    const HttpAnswer answer = page_->Answer(request);
    std::string head = fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n",
        StatusLine(answer.code), answer.type, answer.body.size());
    for (const auto& [name, value] : answer.headers)
      head += fmt::format("{}: {}\r\n", name, value);
    head += "\r\n";
    if (request.method != "HEAD") head += answer.body;
    Send(client, head);
    return true;
  }

  const std::shared_ptr<HttpHandler> page_;
};

}  // namespace

Status CheckMetricsAddress(std::string_view address) {
  return ListenSpec(address).status();
}

class MetricsServer::Impl {
 public:
  // Throws what the library throws.
  Impl(const std::string& spec, ServedMetrics served)
      : host_(spec.substr(0, spec.find(':') == std::string::npos ? 0 : spec.rfind(':'))),
        metrics_(std::move(served.collectables)),
        health_(served.health),
        page_(served.page),
        server_({"listening_ports", spec, "num_threads",
                 std::to_string(served.page == nullptr ? kThreads : kThreadsWithPage),
                 "request_timeout_ms", std::string(kRequestTimeoutMs)}) {
    server_.addHandler("/metrics$", metrics_);
    if (served.page != nullptr) server_.addHandler("/page", page_);
    if (served.health == nullptr) return;
    server_.addHandler("/healthz$", health_);
    server_.addHandler("/readyz$", health_);
  }
  ~Impl() { server_.close(); }

  int port() {
    const std::vector<int> ports = server_.getListeningPorts();
    return ports.empty() ? 0 : ports.front();
  }
  sockaddr_storage address() { return AddressOf(host_, port()); }

 private:
  const std::string host_;
  MetricsHandler metrics_;
  HealthHandler health_;
  PageHandler page_;
  CivetServer server_;
};

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(std::string_view address,
                                                               ServedMetrics served) {
  RESMGR_ASSIGN_OR_RETURN(const std::string spec, ListenSpec(address));
  try {
    auto impl = std::make_unique<Impl>(spec, std::move(served));
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl)));
  } catch (const std::exception&) {
    // The library's text says nothing that helps ("null context when constructing").
    return Unavailable("cannot serve metrics on {}: the address is in use or not of this machine",
                       Printable(address));
  }
}

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(std::string_view address,
                                                               const Metrics& metrics) {
  return Create(address, ServedMetrics{.collectables = {metrics.collectable()}});
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// The library's thread looks every two seconds whether it should end, and when a client connects:
// so this connects until it has ended.
MetricsServer::~MetricsServer() {
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
  };
  const auto end = std::make_shared<End>();
  const sockaddr_storage address = impl_->address();
  std::thread thread;
  try {
    thread =
        StartThread("metrics-end", [end, impl = std::shared_ptr<Impl>(std::move(impl_))]() mutable {
          impl.reset();
          const std::lock_guard lock(end->mutex);
          end->over = true;
          end->changed.notify_all();
        });
  } catch (const std::system_error&) {
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + kEndDeadline;
  std::unique_lock lock(end->mutex);
  while (!end->changed.wait_for(lock, kKnockPause, [&] { return end->over; }) &&
         std::chrono::steady_clock::now() < deadline) {
    Knock(address);
  }
  const bool over = end->over;
  lock.unlock();
  over ? thread.join() : thread.detach();
}

int MetricsServer::port() const {
  return impl_->port();
}

}  // namespace resmgr
