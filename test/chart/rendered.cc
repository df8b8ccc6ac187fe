// SPDX-License-Identifier: Apache-2.0
#include "test/chart/rendered.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/format.h>

namespace resmgr::test {

namespace fs = std::filesystem;

fs::path ChartDirectory() {
  return fs::path(RESMGR_SOURCE_DIR) / "charts/cri-resmgr";
}

std::vector<std::string> ChartSamples() {
  std::vector<std::string> samples;
  for (const auto& entry : fs::directory_iterator(ChartDirectory() / "samples"))
    samples.push_back(entry.path().stem());
  std::ranges::sort(samples);
  return samples;
}

std::vector<ConfigNode> Rendered(const std::string& sample) {
  auto documents =
      ReadDocuments(fmt::format("{}/test/chart/rendered/{}.yaml", RESMGR_SOURCE_DIR, sample));
  // A template may produce no document.
  std::erase_if(documents,
                [](const ConfigNode& document) { return document.kind != ConfigNode::Kind::kMap; });
  return documents;
}

std::vector<ConfigNode> AllOfKind(const std::vector<ConfigNode>& documents, std::string_view kind) {
  std::vector<ConfigNode> found;
  std::ranges::copy_if(documents, std::back_inserter(found), [kind](const ConfigNode& document) {
    return At(document, "kind").text == kind;
  });
  return found;
}

std::vector<ConfigNode> Workloads(const std::vector<ConfigNode>& documents) {
  std::vector<ConfigNode> workloads = AllOfKind(documents, "DaemonSet");
  std::ranges::copy(AllOfKind(documents, "Deployment"), std::back_inserter(workloads));
  return workloads;
}

std::vector<ConfigNode> Containers(const ConfigNode& workload) {
  std::vector<ConfigNode> containers = At(workload, "spec/template/spec/initContainers").items;
  std::ranges::copy(At(workload, "spec/template/spec/containers").items,
                    std::back_inserter(containers));
  return containers;
}

std::string NameOf(const ConfigNode& document) {
  return At(document, "kind").text + " " + At(document, "metadata/name").text;
}

std::string ProgramOf(const ConfigNode& container) {
  return fs::path(At(container, "command/0").text).filename();
}

bool Selects(const ConfigNode& wanted, const ConfigNode& labels) {
  return !wanted.entries.empty() &&
         std::ranges::all_of(wanted.entries, [&labels](const ConfigNode::Entry& entry) {
           return std::ranges::any_of(labels.entries, [&entry](const ConfigNode::Entry& label) {
             return label.key == entry.key && label.value.text == entry.value.text;
           });
         });
}

Output RunProgram(const std::string& program, const std::string& arguments) {
  const std::string command =
      fmt::format("{}/cmd/{}/{} {} 2>&1", RESMGR_BINARY_DIR, program, program, arguments);
  Output output;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  for (size_t size = 0; (size = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.text.append(buffer.data(), size);
  output.status = pclose(pipe);
  return output;
}

}  // namespace resmgr::test
