// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace resmgr::webhook {

// A self-signed certificate for 127.0.0.1 and its key, in PEM form; with an elliptic curve, so that
// it is made in well under a millisecond.
struct TestCertificate {
  std::string certificate{};
  std::string key{};
};

TestCertificate MakeTestCertificate(const std::string& common_name);

}  // namespace resmgr::webhook
