// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>

namespace resmgr::test {

// The section `policy` with this policy and, if it reserves any, with CPU 0 reserved, with
// exclusive CPUs for containers of Guaranteed pods and the rest shared: by the policy itself or,
// for balloons, by their types. Block style, so that it can be indented.
inline std::string PolicyText(const std::string& name, bool reserves = true) {
  std::string text = "Active: " + name + "\n";
  if (reserves) text += "ReservedResources: {CPU: \"cpuset:0\"}\n";
  if (name != "balloons") return text;
  return text +
         "balloons:\n"
         "  whenShort: refuse\n"
         "  balloonTypes:\n"
         "  - name: own\n"
         "    matchExpressions: [{key: qosclass, operator: In, values: [Guaranteed]}]\n"
         "    preferNewBalloons: true\n"
         "    preferSpreadingPods: true\n"
         "  - name: default\n"
         "    minCPUs: 1\n"
         "    minBalloons: 1\n"
         "    maxBalloons: 1\n"
         "    maxOvercommit: 10000\n"
         "    shareIdleCPUsInSame: system\n";
}

// The same as a configuration's file.
inline std::string PolicyFile(const std::string& name, bool reserves = true) {
  std::istringstream lines(PolicyText(name, reserves));
  std::string file = "policy:\n";
  for (std::string line; std::getline(lines, line);)
    file += "  " + line + "\n";
  return file;
}

}  // namespace resmgr::test
