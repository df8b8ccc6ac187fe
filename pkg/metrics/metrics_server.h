// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/metrics/health.h"
#include "pkg/metrics/http_handler.h"
#include "pkg/metrics/metrics.h"

namespace resmgr {

class HttpServer;

// kInvalidArgument for an address that MetricsServer::Create would refuse.
Status CheckMetricsAddress(std::string_view address);

// The served objects: a scrape gets all collectables, one after the other.
struct ServedMetrics {
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables{};
  std::shared_ptr<const Health> health{};  // nullptr: neither /healthz nor /readyz
  std::shared_ptr<HttpHandler> page{};     // for /page and all paths below it; nullptr: none
};

// Serves over HTTP while it exists: /metrics; /healthz, which is 200 if the event loop is at work
// and otherwise 503 with the reason; /readyz, likewise for a daemon that can serve. It has its own
// threads; a daemon without -metrics-address has none of them.
class MetricsServer {
 public:
  // `address` is HOST:PORT or :PORT (every address of this machine); port 0 takes a free one.
  // kInvalidArgument  not an address
  // kUnavailable      another process has the port, or the host is not this machine
  static StatusOr<std::unique_ptr<MetricsServer>> Create(std::string_view address,
                                                         ServedMetrics served);
  static StatusOr<std::unique_ptr<MetricsServer>> Create(std::string_view address,
                                                         const Metrics& metrics);
  // Takes at most a second: an answer that a client keeps busy is left behind.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const;

 private:
  explicit MetricsServer(std::unique_ptr<HttpServer> server);
  const std::unique_ptr<HttpServer> server_;
};

}  // namespace resmgr
