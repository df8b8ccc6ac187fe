// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/container_record.h"

#include "pkg/base/parse.h"

namespace resmgr {

std::string LogName(const ContainerRecord& record) {
  return Printable(FullName(record.pod->pod, record.container.name));
}

}  // namespace resmgr
