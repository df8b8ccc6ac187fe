// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics_server.h"

#include <optional>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// One for each concurrent scrape; usually there is only one.
constexpr size_t kThreads = 2;
// More than the threads that may wait for the page's data (LoopQuestions::Limits::waiting). Scrapes
// have threads of their own.
constexpr size_t kThreadsOfPage = 10;
constexpr uint64_t kHighestPort = 65535;

struct Address {
  std::string host;
  int port = 0;
};

StatusOr<Address> ParseAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  const std::string_view host = address.substr(0, colon);
  const auto port =
      colon == std::string_view::npos ? std::nullopt : ParseUint(address.substr(colon + 1));
  if (!port || *port > kHighestPort || host.find_first_of(", +") != std::string_view::npos) {
    return InvalidArgument("metrics address \"{}\" is not HOST:PORT", Printable(address));
  }
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  return Address{.host = std::string(in_brackets ? host.substr(1, host.size() - 2) : host),
                 .port = static_cast<int>(*port)};
}

bool IsOfPage(const HttpRequest& request) {
  return request.path == "/" || request.path == "/page" || request.path.starts_with("/page/");
}

HttpAnswer Scrape(const ServedMetrics& served) {
  HttpAnswer answer{.type = "text/plain; version=0.0.4; charset=utf-8"};
  for (const auto& collectable : served.collectables)
    answer.body += prometheus::TextSerializer().Serialize(collectable->Collect());
  return answer;
}

// The answer to /healthz or /readyz.
HttpAnswer Told(const Health& health, bool ready) {
  std::string why = health.Sickness();
  if (why.empty() && ready) why = health.WhyNotReady();
  return {.code = why.empty() ? 200 : 503, .body = (why.empty() ? "ok" : why) + "\n"};
}

HttpAnswer Answer(const ServedMetrics& served, const HttpRequest& request) {
  // Methods other than GET and HEAD are refused by the page itself.
  if (served.page != nullptr && IsOfPage(request)) return served.page->Answer(request);
  const bool health = request.path == "/healthz" || request.path == "/readyz";
  if (request.path != "/metrics" && !(health && served.health != nullptr)) {
    return {.code = 404, .body = "Not Found\n"};
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return {.code = 405, .headers = {{"Allow", "GET, HEAD"}}, .body = "Method Not Allowed\n"};
  }
  return health ? Told(*served.health, request.path == "/readyz") : Scrape(served);
}

}  // namespace

Status CheckMetricsAddress(std::string_view address) {
  return ParseAddress(address).status();
}

bool NeedsLookUp(std::string_view address) {
  const auto where = ParseAddress(address);
  if (!where.ok() || where->host.empty()) return false;
  const char* const host = where->host.c_str();
  in6_addr binary{};  // has room for both
  return ::inet_pton(AF_INET, host, &binary) != 1 && ::inet_pton(AF_INET6, host, &binary) != 1;
}

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(std::string_view address,
                                                               ServedMetrics served) {
  RESMGR_ASSIGN_OR_RETURN(const Address where, ParseAddress(address));
  const bool has_page = served.page != nullptr;
  HttpServer::Options options{
      .quick_threads = kThreads,
      .slow_threads = has_page ? kThreadsOfPage : 0,
      .is_slow = [has_page](const HttpRequest& request) { return has_page && IsOfPage(request); },
      .answer = [served = std::move(served)](
                    const HttpRequest& request) { return Answer(served, request); }};
  auto server = HttpServer::Create(where.host, where.port, std::move(options));
  if (!server.ok()) {
    return Unavailable(
        "cannot serve metrics on {}: the address is in use or not of this machine: {}",
        Printable(address), Message(server.status()));
  }
  return std::unique_ptr<MetricsServer>(new MetricsServer(*std::move(server)));
}

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(std::string_view address,
                                                               const Metrics& metrics) {
  return Create(address, ServedMetrics{.collectables = {metrics.collectable()}});
}

MetricsServer::MetricsServer(std::unique_ptr<HttpServer> server) : server_(std::move(server)) {}

MetricsServer::~MetricsServer() = default;

int MetricsServer::port() const {
  return server_->port();
}

void Health::SetNotReady(std::string why) {
  const std::lock_guard lock(mutex_);
  not_ready_ = std::move(why);
}

std::string Health::Sickness(Clock::time_point now) const {
  const Clock::time_point last = last_beat_.load();
  if (last == Clock::time_point{} || now - last <= patience_) return "";
  return fmt::format("the event loop stands still for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(now - last).count());
}

std::string Health::WhyNotReady() const {
  const std::lock_guard lock(mutex_);
  return not_ready_;
}

}  // namespace resmgr
