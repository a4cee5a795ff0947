// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

struct Call {
    address to;
    bytes data;
}

/// A smart account: its owner makes several calls in one transaction, and signs for it (ERC-1271).
contract SmartWallet {
    address public immutable owner;

    constructor() {
        owner = msg.sender;
    }

    function execute(Call[] calldata calls) external {
        require(msg.sender == owner, "not the owner");
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done, bytes memory said) = calls[i].to.call(calls[i].data);
            if (!done) {
                assembly {
                    revert(add(said, 32), mload(said))
                }
            }
        }
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(hash, uint8(signature[64]), r, s);
        return signer == owner && signer != address(0) ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

/// A smart account that goes on as if nothing had happened when one of its calls fails.
contract SwallowingWallet {
    function execute(Call[] calldata calls) external {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool done,) = calls[i].to.call(calls[i].data);
            done;
        }
    }
}
