// SPDX-License-Identifier: Apache-2.0
// The same plugin at containerd's own NRI and hosted by the relay in front of the same containerd:
// compares the containers and the plugin's view of them field by field.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/nri/hosted_plugins.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;
using ::testing::IsEmpty;

// Fields that only one of the two has, or that differ, by their paths.
using Differences = std::map<std::string, std::string>;

void Compare(const std::string& path, const Json& relay, const Json& containerd,
             Differences& differences) {
  if (relay == containerd) return;
  // As in protobuf, an empty map equals an absent one.
  if (relay.is_null() && containerd.is_object()) {
    return Compare(path, Json::object(), containerd, differences);
  }
  if (containerd.is_null() && relay.is_object()) {
    return Compare(path, relay, Json::object(), differences);
  }
  if (relay.is_array() && containerd.is_array() && relay.size() == containerd.size()) {
    for (size_t i = 0; i < relay.size(); ++i)
      Compare(path + "/" + std::to_string(i), relay[i], containerd[i], differences);
    return;
  }
  if (!relay.is_object() || !containerd.is_object()) {
    differences[path] = relay.dump() + " at the relay, " + containerd.dump() + " at containerd";
    return;
  }
  Json keys = relay;
  keys.update(containerd);
  for (const auto& [key, unused] : keys.items())
    Compare(path + "/" + key, relay.value(key, Json()), containerd.value(key, Json()), differences);
}

// Beginnings of paths with the reason why the two differ there: values that the CRI cannot express,
// and facts that containerd knows and a client of the CRI does not.
using Reasons = std::map<std::string, std::string>;

const Reasons kOfContainer = {
    {"/annotations/from-plugin/key", "containerd hands on those that container_annotations names"},
    {"/linux/devices//dev/full/fileMode", "the CRI has no mode: that of the node's file"},
    {"/linux/devices//dev/full/gid", "the CRI has no owner: that of the node's file"},
    {"/linux/devices//dev/full/uid", "the CRI has no owner: that of the node's file"},
};

const Reasons kOfEvents = {
    {"/Containers/0/id", "the container is not created yet"},
    {"/Containers/0/annotations", "containerd's own; the relay's id"},
    {"/Containers/0/labels/io.cri-containerd.kind", "containerd's own"},
    {"/Containers/0/env/HOSTNAME", "containerd adds it"},
    {"/Containers/0/linux/cgroups_path", "containerd makes it: known when the container is there"},
    {"/Containers/0/linux/namespaces", "containerd finds the paths: known when it is there"},
    {"/Containers/0/linux/oom_score_adj", "containerd 1.7 and 2.1 tell 0, whatever it is"},
    {"/Containers/0/linux/resources/devices", "containerd's own rules"},
    {"/Containers/0/linux/resources/memory/swap", "containerd sets it to the limit"},
    {"/Containers/0/mounts//dev", "containerd's own"},
    {"/Containers/0/mounts//etc", "containerd's own"},
    {"/Containers/0/mounts//proc", "containerd's own"},
    {"/Containers/0/mounts//sys", "containerd's own"},
    {"/Containers/0/state", "the relay tells of a start and of a stop when the CRI has done it"},
    {"/Pods/0/annotations", "containerd's own"},
    {"/Pods/0/labels/io.cri-containerd.kind", "containerd's own"},
    {"/Pods/0/linux/cgroups_path", "containerd tells nothing of a pod that has stopped"},
    {"/Pods/0/linux/namespaces", "containerd tells nothing of a pod that has stopped"},
    {"/Pods/0/linux/resources", "those of the sandbox, which containerd makes"},
    {"/Pods/0/pid", "containerd tells nothing of a pod that has stopped"},
};

// The differences without a reason. Reasons that explain one are added to `used`.
Differences Unexplained(const Json& relay, const Json& containerd, const Reasons& reasons,
                        std::set<std::string>& used) {
  Differences differences;
  Compare("", relay, containerd, differences);
  std::erase_if(differences, [&](const auto& difference) {
    const auto reason = std::ranges::find_if(
        reasons, [&](const auto& each) { return difference.first.starts_with(each.first); });
    return reason != reasons.end() && (used.insert(reason->first), true);
  });
  return differences;
}

std::set<std::string> PathsOf(const Reasons& reasons) {
  std::set<std::string> paths;
  for (const auto& [path, unused] : reasons)
    paths.insert(path);
  return paths;
}

// Lists whose order has no meaning become objects, so that a difference names the entry.
void NameEntries(Json& json) {
  static const std::map<std::string, std::string> kNames = {
      {"mounts", "destination"}, {"devices", "path"}, {"namespaces", "type"}, {"rlimits", "type"}};
  for (auto& [key, value] : json.items()) {
    if (key == "env" && value.is_array()) {
      Json named = Json::object();
      for (const std::string variable : value)
        named[variable.substr(0, variable.find('='))] = variable.substr(variable.find('=') + 1);
      value = named;
    }
    const auto name = kNames.find(key);
    if (name != kNames.end() && value.is_array() && !value.empty() &&
        value[0].contains(name->second)) {
      Json named = Json::object();
      for (const Json& entry : value)
        named[entry[name->second].get<std::string>()] = entry;
      value = named;
    }
    if (value.is_structured()) NameEntries(value);
    if (key == "pid" && value.is_number()) value = "PID";
  }
}

// One life of a container under a plugin.
struct Life {
  Json container;            // its OCI specification
  std::vector<Json> events;  // the events that the plugin got

  std::vector<std::string> Order() const {
    std::vector<std::string> names;
    names.reserve(events.size());
    for (const Json& event : events)
      names.push_back(event.value("Event", ""));
    return names;
  }
};

class SameContainerTest : public PluginNodeTest {
 protected:
  // Plays the life of one pod with a container at this host.
  void Live(Host host, Life& life) {
    OpenHost(host, "", "null");
    if (HasFatalFailure() || IsSkipped()) return;
    const std::filesystem::path shared = containerd().directory() / "shared";
    std::filesystem::create_directories(shared);
    { std::ofstream(shared / "text") << "of the plugin"; }
    StartPlugin({"-env", "FROM_PLUGIN=yes", "-mount", shared.string() + ":/of-plugin", "-device",
                 "/dev/full", "-shares", "345", "-annotation", "from-plugin/key=value"});
    if (HasFatalFailure()) return;
    Workload workload = Sized("app", MilliCpu{1500});
    workload.memory_limit = Bytes{64 << 20};
    const RunningPod pod = Run(workload);
    ASSERT_FALSE(pod.container_id.empty()) << node().RelayLog();
    life.container = Read(SpecificationOf(pod), pod);
    Remove(pod);
    ExpectEvent("RemovePodSandbox");
    std::istringstream lines(TextOf(PluginLog()));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with('{')) continue;  // a line of NRI's library
      life.events.push_back(Read(line, pod));
    }
    plugin_.reset();
  }

  // Reads the text, with names in place of values that differ between nodes.
  Json Read(std::string text, const RunningPod& pod) const {
    const auto replace = [&](std::string_view from, std::string_view to) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    };
    replace(pod.container_id, "CONTAINER");
    replace(pod.pod_id, "POD");
    replace(containerd().directory().string(), "DIRECTORY");
    replace(containerd().directory().filename().string(), "NODE");
    text = std::regex_replace(text, std::regex("/proc/[0-9]+/"), "/proc/PID/");
    Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << text;
    NameEntries(json);
    return json;
  }

  // The file that runc was given.
  std::string SpecificationOf(const RunningPod& pod) const {
    return TextOf(containerd().Bundle(pod.container_id) / "config.json");
  }
};

TEST_F(SameContainerTest, AtTheRelayAndAtContainerd) {
  Life containerd;
  Live(Host::kContainerd, containerd);
  if (HasFatalFailure() || IsSkipped()) return;
  Life relay;
  Live(Host::kRelay, relay);
  if (HasFatalFailure()) return;

  std::set<std::string> used;
  EXPECT_THAT(Unexplained(relay.container, containerd.container, kOfContainer, used), IsEmpty());
  EXPECT_EQ(used, PathsOf(kOfContainer));

  used.clear();
  ASSERT_EQ(relay.Order(), containerd.Order());
  for (size_t i = 0; i < relay.events.size(); ++i) {
    EXPECT_THAT(Unexplained(relay.events[i], containerd.events[i], kOfEvents, used), IsEmpty())
        << relay.Order()[i];
  }
  EXPECT_EQ(used, PathsOf(kOfEvents));
}

}  // namespace
}  // namespace resmgr::test
