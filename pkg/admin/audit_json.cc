// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/audit_json.h"

namespace resmgr {

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

}  // namespace resmgr
