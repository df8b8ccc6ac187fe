// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/classes_json.h"

#include <string>

namespace resmgr {
namespace {

using OrderedJson = nlohmann::ordered_json;

const char* StateOf(bool active) {
  return active ? "active" : "inactive";
}

}  // namespace

OrderedJson ClassesJson(const ClassReport& report) {
  OrderedJson list = OrderedJson::array();
  for (const ClassState& one : report.classes) {
    list.push_back({{"kind", one.kind},
                    {"name", one.name},
                    {"state", StateOf(one.active)},
                    {"reason", one.reason},
                    {"containers", one.containers}});
  }
  return list;
}

OrderedJson ContainerClassesJson(const ClassReport& report, std::string_view id) {
  OrderedJson list = OrderedJson::array();
  const auto found = report.containers.find(id);
  if (found == report.containers.end()) return list;
  for (const ContainerClass& one : found->second) {
    list.push_back({{"kind", one.kind},
                    {"name", one.name},
                    {"state", StateOf(one.active)},
                    {"source", one.source},
                    {"way", one.way},
                    {"inForce", one.in_force},
                    {"reason", one.reason}});
  }
  return list;
}

OrderedJson ChangedFilesJson(const ClassReport& report) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [path, before] : report.held)
    list.push_back({{"file", "/" + path}, {"before", before}});
  return list;
}

}  // namespace resmgr
