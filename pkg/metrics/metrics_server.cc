// SPDX-License-Identifier: Apache-2.0
#include "pkg/metrics/metrics_server.h"

#include <exception>
#include <utility>
#include <vector>

#include <prometheus/exposer.h>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// One scrape at a time is what happens; a second thread answers while the first is stuck with a
// slow client.
constexpr size_t kThreads = 2;
constexpr uint64_t kHighestPort = 65535;

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

}  // namespace

Status CheckMetricsAddress(std::string_view address) {
  return ListenSpec(address).status();
}

class MetricsServer::Impl {
 public:
  // Throws what the library throws.
  Impl(const std::string& spec, std::shared_ptr<prometheus::Collectable> collectable)
      : collectable_(std::move(collectable)), exposer_(spec, kThreads) {
    exposer_.RegisterCollectable(collectable_);
  }

  int port() const {
    const std::vector<int> ports = exposer_.GetListeningPorts();
    return ports.empty() ? 0 : ports.front();
  }

 private:
  // The exposer holds only a weak reference.
  std::shared_ptr<prometheus::Collectable> collectable_;
  prometheus::Exposer exposer_;
};

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(std::string_view address,
                                                               const Metrics& metrics) {
  RESMGR_ASSIGN_OR_RETURN(const std::string spec, ListenSpec(address));
  try {
    auto impl = std::make_unique<Impl>(spec, metrics.collectable());
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl)));
  } catch (const std::exception&) {
    // The library's text says nothing that helps ("null context when constructing").
    return Unavailable("cannot serve metrics on {}: the address is in use or not of this machine",
                       Printable(address));
  }
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MetricsServer::~MetricsServer() = default;

int MetricsServer::port() const {
  return impl_->port();
}

}  // namespace resmgr
