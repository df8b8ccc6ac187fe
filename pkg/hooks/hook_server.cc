// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_server.h"

namespace resmgr::hooks {

void HookServer::Ask(HookPoint point, std::string request, Done done) {
  connection_->Ask(point, std::move(request), settings_.timeout,
                   lifetime_.Guard([done = std::move(done)](StatusOr<std::string> answer) {
                     done(std::move(answer));
                   }));
}

}  // namespace resmgr::hooks
