// SPDX-License-Identifier: MIT
//
// What differs between LLVM 14, 16 and 19. No other file of the pass asks for the version.
#ifndef JANUSRT_CC_VERSIONS_H
#define JANUSRT_CC_VERSIONS_H

#include <llvm/ADT/StringRef.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#if LLVM_VERSION_MAJOR != 14 && LLVM_VERSION_MAJOR != 16 && LLVM_VERSION_MAJOR != 19
#error "the pass is tested with LLVM 14, 16 and 19"
#endif

namespace janus
{

inline bool startsWith(llvm::StringRef text, llvm::StringRef prefix)
{
    return text.substr(0, prefix.size()) == prefix;
}

inline bool isMmx(const llvm::Type &type) { return type.isX86_MMXTy(); }

inline llvm::LICMPass licmPass()
{
#if LLVM_VERSION_MAJOR >= 16
    return llvm::LICMPass(llvm::LICMOptions());
#else
    return llvm::LICMPass();
#endif
}

inline bool isSafeToExpand(llvm::SCEVExpander &expander, const llvm::SCEV *value,
                           llvm::ScalarEvolution &evolution)
{
#if LLVM_VERSION_MAJOR >= 16
    (void)evolution;
    return expander.isSafeToExpand(value);
#else
    (void)expander;
    return llvm::isSafeToExpand(value, evolution);
#endif
}

// LLVM keeps the result of this intrinsic across calls, behind which the task may be on another
// thread. It keeps no address that an instruction names. LLVM 14 has no such intrinsic.
inline bool isThreadLocalAddress(const llvm::IntrinsicInst &intrinsic)
{
#if LLVM_VERSION_MAJOR >= 16
    return intrinsic.getIntrinsicID() == llvm::Intrinsic::threadlocal_address;
#else
    (void)intrinsic;
    return false;
#endif
}

// Attributes by which the optimiser drops, merges or moves calls.
inline void forgetPurity(llvm::Function &function)
{
#if LLVM_VERSION_MAJOR >= 16
    function.removeFnAttr(llvm::Attribute::Memory);
#endif
    for (auto kind :
         {llvm::Attribute::ReadNone, llvm::Attribute::ReadOnly, llvm::Attribute::WillReturn,
          llvm::Attribute::NoSync, llvm::Attribute::Speculatable})
        function.removeFnAttr(kind);
}

inline void forgetPurity(llvm::CallBase &call)
{
#if LLVM_VERSION_MAJOR >= 16
    call.removeFnAttr(llvm::Attribute::Memory);
#endif
    for (auto kind :
         {llvm::Attribute::ReadNone, llvm::Attribute::ReadOnly, llvm::Attribute::WillReturn,
          llvm::Attribute::NoSync, llvm::Attribute::Speculatable})
        call.removeFnAttr(kind);
}

} // namespace janus

#endif
