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

}  // namespace resmgr
