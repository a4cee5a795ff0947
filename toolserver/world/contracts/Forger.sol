// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Not a token: it says that money moved, in the words of one.
contract Forger {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function transfer(address to, uint256 value) external returns (bool) {
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function decimals() external pure returns (uint8) {
        return 6;
    }
}
