// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/metrics/http_server.h"
#include "pkg/metrics/metrics.h"

namespace resmgr {

// Whether the daemon is alive and at work, for /healthz and /readyz. Thread-safe: the event loop
// sets the state, the threads of the HTTP server read it.
class Health {
 public:
  using Clock = std::chrono::steady_clock;

  // The event loop counts as healthy until `patience` has passed since its last beat.
  explicit Health(Clock::duration patience = std::chrono::seconds(10)) : patience_(patience) {}

  // Called by the event loop while it is at work.
  void Beat(Clock::time_point now = Clock::now()) { last_beat_.store(now); }
  // Sets the reason why the daemon cannot serve at present; "" if it can.
  void SetNotReady(std::string why);

  // The problem if the event loop does not beat, else "". Before the first beat there is none.
  std::string Sickness(Clock::time_point now = Clock::now()) const;
  std::string WhyNotReady() const;

 private:
  const Clock::duration patience_;
  std::atomic<Clock::time_point> last_beat_{Clock::time_point{}};
  mutable std::mutex mutex_;
  std::string not_ready_ = "it starts";
};

// kInvalidArgument for an address that MetricsServer::Create would refuse.
Status CheckMetricsAddress(std::string_view address);
// Whether serving the address needs a look-up of a name, which may take long.
bool NeedsLookUp(std::string_view address);

// The served objects: a scrape gets all collectables, one after the other.
struct ServedMetrics {
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables{};
  std::shared_ptr<const Health> health{};  // nullptr: neither /healthz nor /readyz
  std::shared_ptr<HttpHandler> page{};     // for /page and all paths below it; nullptr: none
};

// Serves over HTTP while it exists: /metrics; /healthz, which is 200 if the event loop is at work
// and otherwise 503 with the reason; /readyz, which is 200 if the daemon can serve and otherwise
// 503 with the reason. The server has its own threads; a daemon without -metrics-address has none
// of them.
class MetricsServer {
 public:
  // `address` is HOST:PORT or :PORT (every address of this machine); port 0 takes a free one.
  // kInvalidArgument  not an address
  // kUnavailable      another process has the port, or the host is not this machine
  static StatusOr<std::unique_ptr<MetricsServer>> Create(std::string_view address,
                                                         ServedMetrics served);
  static StatusOr<std::unique_ptr<MetricsServer>> Create(std::string_view address,
                                                         const Metrics& metrics);
  // Waits at most a quarter of a second for answers under way; slower ones are abandoned.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const;

 private:
  explicit MetricsServer(std::unique_ptr<HttpServer> server);
  const std::unique_ptr<HttpServer> server_;
};

}  // namespace resmgr
