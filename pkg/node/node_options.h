// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/config/config_options.h"
#include "pkg/node/front_door.h"
#include "pkg/node/node_view.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/cpuset_limits.h"

namespace resmgr {

// The checked options of a daemon's start. A value; an empty path or address means none.
struct NodeOptions {
  std::string version{};
  PolicyRegistry policies;
  std::string topology = "live";  // see LoadMachine
  CgroupPlaces cgroups{};
  FrontDoorFactory door{};
  std::vector<NodeService> services{};  // on sockets besides the front door

  // The paths of the node's sockets and files.
  std::string relay_socket{};    // served by the front door
  std::string runtime_socket{};  // of the runtime behind it
  std::string directory{};       // -relay-dir: data kept for restarts
  std::string host_root = "/";   // where sys and proc of the host are, for samples and classes
  std::string agent_socket{};
  std::string pod_resources_socket{};  // of the kubelet
  std::string metrics_address{};       // HOST:PORT
  std::shared_ptr<NodePage> page{};    // page on that address; nullptr: none
  std::string dump_directory{};        // for files of a delivered configuration
  bool dump_secrets = false;
  std::string cpu_file_directory{};  // host directory of the files with containers' CPUs
  // Whether to take over from the daemon that serves the same sockets, if any.
  bool take_over = false;

  // The configuration at the start, unless another one was delivered to an earlier run: defaults,
  // file and command line.
  Config config{};
  ConfigOptions overrides{};  // of the command line: they override delivered ones
  bool forced = false;        // delivered configurations are refused
  std::string config_file{};
  // Reads the configuration's file again, for SIGHUP. Called on another thread, at any time until
  // the process ends: owns all that it uses.
  std::function<StatusOr<Config>()> read_again{};

  // Directory of the saved placements, below `directory`.
  std::string StateDirectory() const { return directory + "/state"; }
  // The journal of what classes change of the host.
  std::string ClassesDirectory() const { return directory + "/classes"; }
  // Notes of calls under way. In memory, beside the socket: they are needed no longer than the
  // calls.
  std::string CallsFile() const { return relay_socket + ".calls"; }
  // The origin of `config`, for messages.
  std::string ConfigName() const { return config_file.empty() ? "the command line" : config_file; }
};

}  // namespace resmgr
