// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::test {

// The wait for effects that follow requests later.
inline constexpr std::chrono::seconds kPodPatience{60};

// A pod of one container, as kubelets place it.
struct DockerPod {
  std::string name;                // of both
  std::string qos = "besteffort";  // "": Guaranteed
  int64_t shares = 2;
  int64_t quota = 0;
  int64_t nano_cpus = 0;  // in place of a quota
  uint32_t attempt = 0;
  std::string restart_policy{};                 // of dockerd; "": none
  std::map<std::string, std::string> labels{};  // more of both
  std::string sandbox_id{};
  std::string container_id{};
};

// Pods that request `milli_cpus`, and whole CPUs exclusively.
DockerPod BurstableDockerPod(const std::string& name, int milli_cpus);
DockerPod GuaranteedDockerPod(const std::string& name, int cpus);

// A client in the place of dockershim and cri-dockerd: it makes pods with their labels, names and
// cgroups, as paths of cgroupfs, by requests of the Docker API. Thread-compatible.
class DockerPods {
 public:
  struct Reply {
    int status = 0;  // of HTTP; 0: there is none
    nlohmann::json body;
  };

  // `parent`: the cgroup that kubepods is in.
  DockerPods(std::filesystem::path socket, std::string parent)
      : socket_(std::move(socket)), parent_(std::move(parent)) {}

  // Unusual forms of a request, which no client of today writes.
  struct Form {
    std::string before{};        // the path: "x:", "http://host"
    bool beside_config = false;  // a creation: the fields of HostConfig are beside it
  };

  Reply Ask(std::string_view method, const std::string& target,
            const nlohmann::json& body = nullptr, const std::string& before = "") const;
  // The sandbox and the container, both started. A failure has dockerd's message.
  Status Run(DockerPod& pod) const;
  Status RunSandbox(DockerPod& pod) const;
  Reply Create(DockerPod& pod, const std::vector<std::string>& environment = {}) const {
    return Create(pod, environment, {});
  }
  Reply Create(DockerPod& pod, const std::vector<std::string>& environment, const Form& form) const;
  Status Start(const DockerPod& pod) const;
  // Updates the container as a resize in place does.
  Reply Update(const DockerPod& pod, const nlohmann::json& resources) const;
  Status Stop(const std::string& id) const;
  // Container and sandbox, stopped and removed.
  Status Remove(const DockerPod& pod) const;

  nlohmann::json Inspect(const std::string& id) const;
  // The CPUs that the container's process may use, by its status file; empty: it does not run.
  CpuSet CpusInside(const DockerPod& pod) const;
  std::string CgroupOf(const DockerPod& pod) const;

 private:
  std::string NameOf(const DockerPod& pod, std::string_view container) const;
  static nlohmann::json LabelsOf(const DockerPod& pod, std::string_view container);

  const std::filesystem::path socket_;
  const std::string parent_;
};

}  // namespace resmgr::test
