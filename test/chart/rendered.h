// SPDX-License-Identifier: Apache-2.0
// The rendered manifests of charts/cri-resmgr with its samples, written by scripts/test-chart
// --update, with a real Helm.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/config/config_node.h"
#include "test/support/sample_documents.h"

namespace resmgr::test {

// RESMGR_SOURCE_DIR/charts/cri-resmgr.
std::filesystem::path ChartDirectory();

// All samples: "plugin", "relay", ...
std::vector<std::string> ChartSamples();

// The manifests that the chart makes of a sample.
std::vector<ConfigNode> Rendered(const std::string& sample);

// The objects of a kind.
std::vector<ConfigNode> AllOfKind(const std::vector<ConfigNode>& documents, std::string_view kind);

// Manifests with pods: DaemonSets and Deployments.
std::vector<ConfigNode> Workloads(const std::vector<ConfigNode>& documents);

// The containers of such a manifest, those for its initialization first.
std::vector<ConfigNode> Containers(const ConfigNode& workload);

// "Kind name", for messages.
std::string NameOf(const ConfigNode& document);

// The program of a container: the base name of its first word.
std::string ProgramOf(const ConfigNode& container);

// Whether these labels are among `labels`; false if there are none.
bool Selects(const ConfigNode& wanted, const ConfigNode& labels);

struct Output {
  std::string text;  // of both streams
  int status = -1;
};

// Runs a program of the build directory by the shell.
Output RunProgram(const std::string& program, const std::string& arguments);

}  // namespace resmgr::test
