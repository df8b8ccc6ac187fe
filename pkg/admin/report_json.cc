// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/report_json.h"

#include <string>

namespace resmgr {
namespace {

const char* StateOf(bool active) {
  return active ? "active" : "inactive";
}

}  // namespace

OrderedJson AuditJson(const AuditReport& report) {
  OrderedJson containers = OrderedJson::array();
  for (const AuditReport::Finding& finding : report.findings) {
    OrderedJson drifts = OrderedJson::array();
    for (const Drift& drift : finding.drifts) {
      drifts.push_back({{"where", ToString(drift.where)},
                        {"value", drift.value},
                        {"decided", drift.decided},
                        {"actual", drift.actual},
                        {"why", drift.why}});
    }
    containers.push_back({{"container", finding.container},
                          {"id", finding.id.value()},
                          {"drifts", std::move(drifts)},
                          {"unread", finding.unread},
                          {"sentAgain", finding.sent_again}});
  }
  return {{"checked", report.checked},
          {"drifted", report.drifted},
          {"unread", report.unread},
          {"changing", report.changing},
          {"runtimeProblem", report.runtime_problem},
          {"containers", std::move(containers)}};
}

void AddFiles(const StatusOr<std::vector<HostClasses::Audited>>& audited, OrderedJson& answer) {
  if (!audited.ok()) {
    answer["filesProblem"] = Message(audited.status());
    return;
  }
  OrderedJson files = OrderedJson::array();
  for (const HostClasses::Audited& one : *audited) {
    files.push_back({{"file", "/" + one.difference.path},
                     {"wanted", one.difference.wanted},
                     {"actual", one.difference.now},
                     {"unread", one.difference.unread},
                     {"repaired", one.repaired}});
  }
  if (!files.empty()) answer["files"] = std::move(files);
}

OrderedJson ClassesJson(const ClassReport& report) {
  OrderedJson list = OrderedJson::array();
  for (const ClassState& one : report.classes) {
    list.push_back({{"kind", one.kind},
                    {"name", one.name},
                    {"state", StateOf(one.active)},
                    {"reason", one.Why()},
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

OrderedJson ProblemsJson(const std::vector<Problem>& problems) {
  OrderedJson list = OrderedJson::array();
  for (const Problem& problem : problems) {
    list.push_back({{"kind", problem.kind},
                    {"since", Rfc3339(problem.since)},
                    {"message", problem.message},
                    {"objects", problem.objects},
                    {"next", problem.next}});
  }
  return list;
}

}  // namespace resmgr
