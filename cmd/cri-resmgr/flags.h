// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/config/config_options.h"

namespace resmgr {

// How requests about containers arrive (-mode).
enum class Mode { kRelay, kNriPlugin, kDocker };

// The options of cri-resmgr (DESIGN 7.1). Paths of sockets are without "unix://".
struct Flags {
  std::string config_file;           // read for `config`; at most one of these three
  std::string force_config_file;     // likewise; sets `forced`
  std::string fallback_config_file;  // likewise, in force until the agent has sent a configuration

  // No agent may change the configuration. Without force_config_file, config_file is used.
  bool forced = false;

  Mode mode = Mode::kRelay;
  std::string nri_socket = "/var/run/nri/nri.sock";
  std::string nri_plugin_name = "cri-resmgr";
  std::string nri_plugin_index = "90";
  std::string docker_socket = "/var/run/docker.sock";
  bool docker_others_share = false;  // containers outside pods are placed, too

  std::string relay_socket = "/var/run/cri-resmgr/cri-resmgr.sock";
  std::string runtime_socket = "/var/run/containerd/containerd.sock";
  std::string image_socket = "default";                                      // see ImageSocket
  std::string config_socket = "/var/run/cri-resmgr/cri-resmgr-config.sock";  // see ConfigSocket
  std::string agent_socket = "/var/run/cri-resmgr/cri-resmgr-agent.sock";    // see AgentSocket
  std::string admin_socket = "/var/run/cri-resmgr/cri-resmgr-admin.sock";    // see AdminSocket
  // See PodResourcesSocket.
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string relay_dir = "/var/lib/cri-resmgr";
  std::string metrics_address = "off";  // see MetricsAddress
  bool metrics_page = false;            // serve a page for browsers there
  std::string topology = "live";        // a description for LoadMachine
  std::string pods_cgroup{};            // see CgroupPlaces::pods
  std::string host_root = "/";          // where sys and proc of the host are
  std::string dump_dir{};               // see DumpDirectory
  bool dump_secrets = false;
  std::string cpu_file_dir{};  // see CpuFileDirectory
  bool take_over = false;      // take the sockets over from the daemon that serves relay_socket

  // Requests to do one thing and exit.
  bool list_policies = false;
  bool check_config = false;
  bool print_config = false;
  bool print_schema = false;
  bool print_config_page = false;
  bool reset_policy = false;
  bool reset_config = false;
  bool version = false;
  std::string help;  // the text to print, if it was requested

  // The values that the command line sets; they also override an agent's configuration.
  ConfigOptions overrides;
  // The configuration at the start: the defaults, then the file, then `overrides`.
  Config config;

  // Empty: images are not served.
  std::string ImageSocket() const;
  // Empty: no agent is called.
  std::string AgentSocket() const;
  // Empty: the socket is not served.
  std::string ConfigSocket() const;
  std::string AdminSocket() const;
  // Empty: the kubelet is not asked where devices are.
  std::string PodResourcesSocket() const;
  // HOST:PORT. Empty: no metrics are served.
  std::string MetricsAddress() const;
  // The directory in which a delivered configuration may have files written.
  std::string DumpDirectory() const;
  // The host directory of the files that tell containers their CPUs; an absolute path.
  std::string CpuFileDirectory() const;
  // The configuration file that was given; empty: none.
  std::string ConfigFile() const;
};

// Reads the command line and then the configuration file that it names, if any, in either format
// (pkg/config/config_file.h). An options file may set every flag except those that name
// configuration files; flags on the command line win. With -help, -version or -list-policies no
// file is read. kInvalidArgument: one line with the flag, or with file and line.
StatusOr<Flags> ParseFlags(int argc, const char* const* argv, const ConfigChecks& checks);

// Reads the file again; flags of the command line win over its values. Options of an options file
// that are not part of the configuration change only at a restart.
StatusOr<Config> ReadConfigAgain(const Flags& flags, const ConfigChecks& checks);

}  // namespace resmgr
