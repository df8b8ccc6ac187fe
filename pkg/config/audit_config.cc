// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/audit_config.h"

namespace resmgr {

void DescribeAudit(ConfigSection& root, AuditConfig& config) {
  root.Map("audit", [&config](ConfigSection& audit) {
    // Not shorter, since an audit asks the runtime for the status of each container.
    audit.Duration("Interval", std::chrono::seconds(1), std::chrono::hours(24), config.interval,
                   "how often the values in force for running containers are compared with the "
                   "decided values; in mode `docker` also after an update by another client; "
                   "`disabled`: only on `cri-resmgr-ctl audit`",
                   "disabled");
    audit.Bool("Repair", config.repair,
               "`true`: the decided values are then sent again to containers that differ");
  });
}

}  // namespace resmgr
