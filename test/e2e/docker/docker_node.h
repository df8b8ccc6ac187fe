// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "test/support/containerd/child_process.h"
#include "test/support/dockerd/dockerd.h"

namespace resmgr::test {

// A whole node of the Docker engine: a dockerd of its own and the built cri-resmgr in front of it.
// Thread-compatible.
class DockerNode {
 public:
  struct Options {
    std::string policy = "null";
    std::string reserved{};            // as after "CPU="; "" reserves nothing
    std::vector<std::string> flags{};  // more of cri-resmgr's
    // Started by the name koord-runtime-proxy, with that program's flags in place of mode, sockets
    // and policy.
    bool koord = false;
    Dockerd::Options engine{};
  };

  static StatusOr<std::unique_ptr<DockerNode>> Start(const Options& options);
  DockerNode(const DockerNode&) = delete;
  DockerNode& operator=(const DockerNode&) = delete;
  ~DockerNode() = default;

  // Starts cri-resmgr with the same flags as the first time.
  Status StartDaemon();

  Dockerd& dockerd() { return *dockerd_; }
  DaemonProcess& daemon() { return *daemon_; }
  const std::filesystem::path& directory() const { return dockerd_->directory(); }
  // The socket on which cri-resmgr serves.
  std::filesystem::path socket() const { return directory() / "relay.sock"; }

  // The JSON that cri-resmgr-ctl prints for this command.
  using Words = std::vector<std::string>;
  StatusOr<std::string> Ctl(const std::string& command) const { return Ctl(Words{command}); }
  StatusOr<std::string> Ctl(const Words& command) const;
  // The command line of cri-resmgr-ctl with this command.
  Words CtlLine(const Words& command) const;

 private:
  explicit DockerNode(const Options& options) : options_(options) {}

  std::filesystem::path AdminSocket() const { return directory() / "admin.sock"; }

  const Options options_;
  std::unique_ptr<Dockerd> dockerd_;
  std::unique_ptr<DaemonProcess> daemon_;
};

}  // namespace resmgr::test
