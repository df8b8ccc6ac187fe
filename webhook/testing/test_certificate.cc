// SPDX-License-Identifier: Apache-2.0
#include "webhook/testing/test_certificate.h"

#include <memory>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace resmgr::webhook {

namespace {

template <typename Type, void (*kFree)(Type*)>
struct Free {
  void operator()(Type* object) const { kFree(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, &EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509, &X509_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, &BIO_free_all>>;

constexpr long kOneDay = 24 * 3600;

std::string Text(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

TestCertificate MakeTestCertificate(const std::string& common_name,
                                    std::chrono::seconds valid_for) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kOneDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_for.count());
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate.get(), name);
  X509_sign(certificate.get(), key.get(), EVP_sha256());

  TestCertificate made;
  const Memory memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(memory.get(), certificate.get());
  made.certificate = Text(memory.get());
  const Memory key_memory(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(key_memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  made.key = Text(key_memory.get());
  return made;
}

}  // namespace resmgr::webhook
