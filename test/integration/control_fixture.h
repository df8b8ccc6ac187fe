// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/integration/daemon_fixture.h"

namespace resmgr::test {

using Json = nlohmann::json;

// A daemon that an agent and cri-resmgr-ctl talk to.
class ControlTest : public DaemonTest {
 protected:
  // The contents of a ConfigMap.
  static constexpr const char* kStatic = "Active: static\nReservedResources: {CPU: 1}\n";

  struct Shown {
    int exit_code = 0;
    std::string out;
    std::string err;
    Json json() const { return Json::parse(out, nullptr, false); }
  };

  // Starts both, with metrics and the static policy; returns when the daemon has adopted the
  // runtime's containers.
  void StartWithMetrics(const std::vector<std::string>& more);
  // The text that Prometheus would read.
  std::string Counts() const;

  // Runs cri-resmgr-ctl with these arguments.
  Shown Ctl(std::vector<std::string> arguments) const;

  // The answer to an agent's push: the error's text, "" for accepted.
  std::string SetConfig(const std::map<std::string, std::string>& data) const;

  std::string PolicyInForce() const {
    return Ctl({"status", "-o", "json"}).json().value("policy", "?");
  }

  // Starts the daemon anew before a runtime that does not list its pods yet, and calls `test`,
  // which lets the runtime go on. Questions are held back for two seconds from the start: `test`
  // returns false, and is repeated, where a busy machine has taken longer, as `in_time` tells it.
  void DuringFirstLook(const std::vector<std::string>& flags,
                       const std::function<bool(const std::function<bool()>& in_time)>& test);

  std::string WriteFile(const std::string& name, const std::string& text) const;
  // The exit code of `config set` with a file of this text.
  int Set(const std::string& text) const {
    return Ctl({"config", "set", WriteFile("set.yaml", text)}).exit_code;
  }
};

}  // namespace resmgr::test
