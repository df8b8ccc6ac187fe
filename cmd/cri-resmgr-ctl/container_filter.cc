// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/container_filter.h"

namespace resmgr {

void ContainerFilter::Declare(CommandLine& line) {
  line.Flag("n", "NAMESPACE", "Only containers of this namespace.", &namespace_);
  line.Flag("l", "SELECTOR",
            "Only containers of pods with such labels, as for kubectl: app=web,tier!=db, "
            "'app in (web,api)', app, '!app'.",
            &selector_);
}

void ContainerFilter::AddTo(Reply& request) const {
  if (!namespace_.empty()) request["namespace"] = namespace_;
  if (!selector_.empty()) request["selector"] = selector_;
}

}  // namespace resmgr
