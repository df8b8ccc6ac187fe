// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/annotation_warnings.h"

#include <string>

#include "pkg/base/parse.h"

namespace resmgr {

void AnnotationWarnings::OnAdopted(std::span<const Act> acts) {
  for (const Act& act : acts)
    Look(act);
}

void AnnotationWarnings::Look(const Act& act) {
  for (const std::string& why : act.policy.Unheeded(act.pod, act.container)) {
    log_.Warn("container {}: {}; see docs/security.md",
              Printable(FullName(act.pod, act.container.name)), Printable(why));
  }
}

}  // namespace resmgr
