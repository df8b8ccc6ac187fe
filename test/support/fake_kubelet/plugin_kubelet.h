// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pkg/api/dra.pb.h"
#include "pkg/base/status.h"

namespace resmgr::test {

namespace dra_api = k8s::io::kubelet::pkg::apis::dra::v1;

// A kubelet as drivers for Dynamic Resource Allocation see it: it finds their sockets in its
// directory, registers them, and calls them, again and again where they fail. Each call waits for
// its end. Thread-compatible.
class PluginKubelet {
 public:
  struct Driver {
    std::string endpoint;
    std::string service;  // the first one of the driver's that this kubelet knows
  };
  struct Claim {
    std::string uid;
    std::string namespace_name;
    std::string name;
  };
  using Claims = std::vector<Claim>;

  // `root` is where the kubelet's own paths begin. It knows these services.
  explicit PluginKubelet(std::string root,
                         std::vector<std::string> services = {"v1.DRAPlugin", "v1beta1.DRAPlugin"});

  // Looks for sockets once: new ones are registered, those that are gone forgotten.
  void Look();
  // Those that are registered, by name.
  const std::map<std::string, Driver>& drivers() const { return drivers_; }

  // One call, for so long: a kubelet that is killed meanwhile waits no longer.
  StatusOr<dra_api::NodePrepareResourcesResponse> Prepare(
      const std::string& driver, const Claims& claims,
      std::chrono::milliseconds timeout = std::chrono::seconds(45)) const;
  StatusOr<dra_api::NodeUnprepareResourcesResponse> Unprepare(
      const std::string& driver, const Claims& claims,
      std::chrono::milliseconds timeout = std::chrono::seconds(45)) const;

  // Until each claim is prepared, with the drivers that are there at each try; the last error where
  // that takes too long.
  StatusOr<dra_api::NodePrepareResourcesResponse> PrepareAll(const std::string& driver,
                                                             const Claims& claims,
                                                             std::chrono::milliseconds patience);
  Status UnprepareAll(const std::string& driver, const Claims& claims,
                      std::chrono::milliseconds patience);

 private:
  StatusOr<std::string> Call(const std::string& driver, const std::string& method,
                             const std::string& message, std::chrono::milliseconds timeout) const;
  void Register(const std::string& socket);

  const std::string root_;
  const std::vector<std::string> services_;
  std::map<std::string, std::string> sockets_;  // name of the driver by the socket's identity
  std::map<std::string, Driver> drivers_;
};

}  // namespace resmgr::test
