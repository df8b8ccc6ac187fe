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
#include "pkg/node/node_page.h"
#include "pkg/node/node_view.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/pods_cgroup.h"

namespace resmgr {

// What a daemon is told at its start, checked already. A value; where a text says where something
// is, "" means that there is none.
struct NodeOptions {
  std::string version{};
  PolicyRegistry policies;
  std::string topology = "live";  // as LoadMachine reads it
  CgroupPlaces cgroups{};
  FrontDoorFactory door{};
  std::vector<NodeService> services{};  // on sockets beside the front door

  // Paths.
  std::string relay_socket{};    // where the front door serves
  std::string runtime_socket{};  // of the runtime behind it
  std::string directory{};       // what is kept over restarts: -relay-dir
  std::string agent_socket{};
  std::string metrics_address{};     // HOST:PORT
  std::shared_ptr<NodePage> page{};  // on that address; nullptr: there is none
  std::string dump_directory{};      // where a delivered configuration may have files written
  bool dump_secrets = false;
  std::string cpu_file_directory{};  // the host's side of the files that tell containers their CPUs
  // From the daemon that serves the same sockets, if one does.
  bool take_over = false;

  // In force at the start, where no other one was delivered to an earlier run: defaults, file and
  // command line.
  Config config{};
  ConfigOptions overrides{};  // of the command line: they win over what is delivered
  bool forced = false;        // what is delivered is refused
  std::string config_file{};
  // The configuration as the file says now, for SIGHUP. Called on another thread, at any time until
  // the process ends: owns what it uses.
  std::function<StatusOr<Config>()> read_again{};

  // What was placed, below `directory`.
  std::string StateDirectory() const { return directory + "/state"; }
  // Notes of calls under way: beside the socket, in memory, and there as long as calls can be.
  std::string CallsFile() const { return relay_socket + ".calls"; }
  // Where `config` comes from, for messages.
  std::string ConfigName() const { return config_file.empty() ? "the command line" : config_file; }
};

}  // namespace resmgr
