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

// kInvalidArgument for what MetricsServer::Create takes for no address.
Status CheckMetricsAddress(std::string_view address);

// What is served: a scrape gets all collectables, one after the other.
struct ServedMetrics {
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables{};
  std::shared_ptr<const Health> health{};  // nullptr: neither /healthz nor /readyz
  std::shared_ptr<HttpHandler> page{};     // of /page and what is below it; nullptr: there is none
};

// Serves over HTTP while it exists: /metrics; /healthz, which is 200 where the event loop is at
// work and otherwise 503 with the reason; /readyz likewise for a daemon that is of use. It brings
// threads of its own; a daemon without -metrics-address has none of them.
class MetricsServer {
 public:
  // `address` is HOST:PORT or :PORT (every address of this machine); port 0 takes a free one.
  //   kInvalidArgument  not an address
  //   kUnavailable      another process has the port, or the host is not ours
  static StatusOr<std::unique_ptr<MetricsServer>> Create(std::string_view address,
                                                         ServedMetrics served);
  static StatusOr<std::unique_ptr<MetricsServer>> Create(std::string_view address,
                                                         const Metrics& metrics);
  // Takes a second at most: one that a client keeps busy is left behind.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const;

 private:
  explicit MetricsServer(std::unique_ptr<HttpServer> server);
  const std::unique_ptr<HttpServer> server_;
};

}  // namespace resmgr
