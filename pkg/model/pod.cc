// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/pod.h"

namespace resmgr {

std::string_view ToString(QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return "Guaranteed";
    case QosClass::kBurstable:
      return "Burstable";
    case QosClass::kBestEffort:
      return "BestEffort";
  }
  return "unknown";
}

}  // namespace resmgr
